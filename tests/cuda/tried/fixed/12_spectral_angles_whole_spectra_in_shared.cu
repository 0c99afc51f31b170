// spectral_angles_whole_spectra_in_shared, side pieces: a thread takes four elements at once, 16 bytes an access.
#include "../tried.cuh"

constexpr int BANDS = 224, MINERALS = 8;
struct Sums {
    float with[MINERALS] = {}, own = 0.0f;
    __device__ void add(float value, const float *minerals) {
#pragma unroll
        for (int k = 0; k < MINERALS; k++) with[k] += value * minerals[k];
        own += value * value;
    }
};
__device__ __forceinline__ float angle(float product, float square) { return acosf(fminf(1.0f, product * rsqrtf(square))); }

template <int PIECE>
__global__ void __launch_bounds__(64) spectral_angles(const float *__restrict__ spectra, const float *__restrict__ minerals, float *__restrict__ out, int pixels) {
    extern __shared__ float room[];
    float *library = room, *tile = room + PIECE * MINERALS;
    const int t = threadIdx.x, first = blockIdx.x * 64;
    Sums sums;
    for (int start = 0; start < BANDS; start += PIECE) {
        for (int i = t; i < PIECE * MINERALS; i += 64) library[i] = minerals[start * MINERALS + i];
        for (int i = t; i < PIECE * 64; i += 64) tile[i / PIECE * (PIECE + 1) + i % PIECE] = spectra[static_cast<size_t>(first + i / PIECE) * BANDS + start + i % PIECE];
        __syncthreads();
#pragma unroll 8
        for (int i = 0; i < PIECE; i++) sums.add(tile[t * (PIECE + 1) + i], library + i * MINERALS);
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < MINERALS; k++) out[static_cast<size_t>(k) * pixels + first + t] = angle(sums.with[k], sums.own);
}

// Rewrites. LOADS: vectors from global memory, stored as four floats (rows of 33: no conflicts). TILE: rows of 36, and vectors into
// and out of the tile, too. ALL: the library in vectors, too.
enum { LOADS, TILE, ALL };
template <int FORM, int PIECE>
__global__ void __launch_bounds__(64) spectral_angles_vectors(const float *__restrict__ spectra, const float *__restrict__ minerals, float *__restrict__ out, int pixels) {
    constexpr int PITCH = FORM == LOADS ? PIECE + 1 : PIECE + 4, FOURS = PIECE / 4;
    __shared__ __align__(16) float library[PIECE * MINERALS], tile[64 * PITCH];
    const int t = threadIdx.x, first = blockIdx.x * 64;
    Sums sums;
    for (int start = 0; start < BANDS; start += PIECE) {
        if (FORM == ALL) for (int i = t; i < PIECE * MINERALS / 4; i += 64) reinterpret_cast<float4 *>(library)[i] = reinterpret_cast<const float4 *>(minerals + start * MINERALS)[i];
        else for (int i = t; i < PIECE * MINERALS; i += 64) library[i] = minerals[start * MINERALS + i];
        float4 v[FOURS];
#pragma unroll
        for (int j = 0; j < FOURS; j++) {
            const int i = j * 64 + t;
            v[j] = *reinterpret_cast<const float4 *>(spectra + static_cast<size_t>(first + i / FOURS) * BANDS + start + i % FOURS * 4);
        }
#pragma unroll
        for (int j = 0; j < FOURS; j++) {
            const int i = j * 64 + t;
            float *to = tile + i / FOURS * PITCH + i % FOURS * 4;
            if (FORM == LOADS) to[0] = v[j].x, to[1] = v[j].y, to[2] = v[j].z, to[3] = v[j].w;
            else *reinterpret_cast<float4 *>(to) = v[j];
        }
        __syncthreads();
        if (FORM == LOADS) {
#pragma unroll 8
            for (int i = 0; i < PIECE; i++) sums.add(tile[t * PITCH + i], library + i * MINERALS);
        } else {
#pragma unroll 2
            for (int i = 0; i < PIECE; i += 4) {
                const float4 four = *reinterpret_cast<const float4 *>(tile + t * PITCH + i);
                const float values[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
                for (int k = 0; k < 4; k++)
                    if (FORM == ALL) {
                        const float4 *m = reinterpret_cast<const float4 *>(library + (i + k) * MINERALS), a = m[0], b = m[1];
                        const float of[MINERALS] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
                        sums.add(values[k], of);
                    } else sums.add(values[k], library + (i + k) * MINERALS);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < MINERALS; k++) out[static_cast<size_t>(k) * pixels + first + t] = angle(sums.with[k], sums.own);
}

int main() {
    const int n = 1 << 18;
    std::vector<float> library(BANDS * MINERALS);
    for (int k = 0; k < MINERALS; k++) {
        float square = 0.0f;
        for (int i = 0; i < BANDS; i++) square += powf(library[i * MINERALS + k] = 0.1f + (hashed(k * 1000 + i / 8) % 1000) * 1e-3f, 2.0f);
        for (int i = 0; i < BANDS; i++) library[i * MINERALS + k] /= sqrtf(square);
    }
    const float *cube = drawn<float>(size_t(n) * BANDS, 0.05, 1.0, 1), *minerals = copied(library);
    float *out = get<float>(size_t(n) * MINERALS);
    const size_t room = (32 * MINERALS + 64 * 33) * sizeof(float);
    judge({{"as_it_is", [=] { spectral_angles<32><<<n / 64, 64, room>>>(cube, minerals, out, n); }},
        {"vector_loads_only", [=] { spectral_angles_vectors<LOADS, 32><<<n / 64, 64>>>(cube, minerals, out, n); }},
        {"vectors_and_tile", [=] { spectral_angles_vectors<TILE, 32><<<n / 64, 64>>>(cube, minerals, out, n); }},
        {"vectors_everywhere", [=] { spectral_angles_vectors<ALL, 32><<<n / 64, 64>>>(cube, minerals, out, n); }}}, {{out, size_t(n) * MINERALS}});
}
