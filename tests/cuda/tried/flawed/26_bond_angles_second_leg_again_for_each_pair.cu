// bond_angles_second_leg_again_for_each_pair, side flawed: smaller blocks, or one wave of blocks that loop over the work.
#include "../tried.cuh"

constexpr int MOST = 20;
constexpr float CUTOFF = 1.9f, SHARPNESS = 1.2f;

__device__ __forceinline__ float4 leg(float4 from, float4 to) {
    float dx = to.x - from.x, dy = to.y - from.y, dz = to.z - from.z;
    float r = sqrtf(dx * dx + dy * dy + dz * dz);
    float weight = r < CUTOFF ? expf(SHARPNESS / (r - CUTOFF)) : 0.f;
    return make_float4(dx / r, dy / r, dz / r, weight);
}
__device__ __forceinline__ float angle_energy(float4 a, float4 b) {
    float off = a.x * b.x + a.y * b.y + a.z * b.z + 1.f / 3.f;
    return a.w * b.w * off * off;
}
__device__ __forceinline__ void energy_of(int i, const float4 *atoms, const int *counts, const int *list, float *energy, int n) {
    float4 self = atoms[i];
    float sum = 0.f;
    for (int j = 1; j < counts[i]; ++j) {
        float4 first = leg(self, atoms[list[j * n + i]]);
        for (int k = 0; k < j; ++k) sum += angle_energy(first, leg(self, atoms[list[k * n + i]]));
    }
    energy[i] = sum;
}
__global__ void three_body(const float4 *atoms, const int *counts, const int *list, float *energy, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    energy_of(i, atoms, counts, list, energy, n);
}
__global__ void three_body_wave(const float4 *atoms, const int *counts, const int *list, float *energy, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) energy_of(i, atoms, counts, list, energy, n);
}

int main() {
    const int s = 64, n = s * s * s;
    std::vector<float4> atoms(n);
    std::vector<int> counts(n), list(size_t(MOST) * n);
    unsigned seed = 5;
    auto jitter = [&] { return hashed(seed++) % 1024 / 5120.f; };
    for (int i = 0; i < n; ++i) {
        int x = i % s, y = i / s % s, z = i / s / s;
        atoms[i] = make_float4(x + jitter(), y + jitter(), z + jitter(), 0.f);
        for (int d = 0; d < 27; ++d) {
            int dx = d % 3 - 1, dy = d / 3 % 3 - 1, dz = d / 9 - 1, far = dx * dx + dy * dy + dz * dz;
            if (far == 0 || far == 3 || x + dx < 0 || x + dx >= s || y + dy < 0 || y + dy >= s || z + dz < 0 || z + dz >= s) continue;
            list[size_t(counts[i]++) * n + i] = i + dx + s * (dy + s * dz);
        }
    }
    const float4 *places = copied(atoms);
    const int *number = copied(counts), *columns = copied(list);
    float *energy = get<float>(n);
    judge({{"as_it_is", [=] { three_body<<<n / 64, 64>>>(places, number, columns, energy, n); }},
        {"one_wave", [=] { three_body_wave<<<3168, 64>>>(places, number, columns, energy, n); }},
        {"blocks_of_32", [=] { three_body<<<n / 32, 32>>>(places, number, columns, energy, n); }}}, {{energy, size_t(n)}});
}
