// rock_reactions_lanes_without_pores, side listed: one record of 16 bytes in place of three arrays.
#include "../tried.cuh"

constexpr int SUBSTEPS = 12;

struct Rock {
    const unsigned char *pore;
    const float *acid, *mineral, *heat;
};

__device__ __forceinline__ float2 react(float acid, float mineral, float heat) {
    const float rate = 0.2f * __expf(-1.5f / heat);
    for (int step = 0; step < SUBSTEPS; step++) {
        const float dissolved = rate * acid * sqrtf(mineral) / (0.3f + acid);
        acid = fmaxf(acid - 0.5f * dissolved, 0.f) + 0.01f * __expf(-acid);
        mineral = fmaxf(mineral - 0.4f * dissolved, 0.f);
    }
    return make_float2(acid, mineral);
}
__global__ void __launch_bounds__(256) dissolve_listed(Rock rock, float2 *__restrict__ out, const int *__restrict__ pores, int count) {
    const int k = blockIdx.x * 256 + threadIdx.x;
    if (k >= count) return;
    const int i = pores[k];
    out[i] = react(rock.acid[i], rock.mineral[i], rock.heat[i]);
}

// acid, mineral, heat, (nothing): one load of 16 bytes
__global__ void __launch_bounds__(256) dissolve_records(const float4 *__restrict__ rock, float2 *__restrict__ out, const int *__restrict__ pores, int count) {
    const int k = blockIdx.x * 256 + threadIdx.x;
    if (k >= count) return;
    const int i = pores[k];
    const float4 cell = rock[i];
    out[i] = react(cell.x, cell.y, cell.z);
}
__global__ void __launch_bounds__(256) pack(Rock rock, float4 *__restrict__ records, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) records[i] = make_float4(rock.acid[i], rock.mineral[i], rock.heat[i], 0.f);
}
// More than was said: records of pores only, in the order of the list, with the place as fourth value.
__global__ void __launch_bounds__(256) dissolve_pore_records(const float4 *__restrict__ rock, float2 *__restrict__ out, int count) {
    const int k = blockIdx.x * 256 + threadIdx.x;
    if (k >= count) return;
    const float4 cell = rock[k];
    out[__float_as_int(cell.w)] = react(cell.x, cell.y, cell.z);
}
__global__ void __launch_bounds__(256) pack_pores(Rock rock, float4 *__restrict__ records, const int *__restrict__ pores, int count) {
    const int k = blockIdx.x * 256 + threadIdx.x;
    if (k >= count) return;
    const int i = pores[k];
    records[k] = make_float4(rock.acid[i], rock.mineral[i], rock.heat[i], __int_as_float(i));
}

int main() {
    const long n = 192, cells = n * n * n;
    std::vector<unsigned char> pore(cells);
    std::vector<int> pores;
    for (long i = 0; i < cells; i++) {
        const unsigned grain = hashed(static_cast<unsigned>(i / 3 % n + i / n / 4 % n * 1000 + i / n / n / 4 * 1000000));
        pore[i] = grain % 5 == 0 ? hashed(static_cast<unsigned>(i)) % 8 != 0 : hashed(static_cast<unsigned>(i)) % 40 == 0;
        if (pore[i]) pores.push_back(static_cast<int>(i));
    }
    const int count = static_cast<int>(cells), listed = static_cast<int>(pores.size()), grid = (listed + 255) / 256, all = (count + 255) / 256;
    const Rock rock{copied(pore), drawn<float>(cells, 0.1, 1.0, 1), drawn<float>(cells, 0.2, 2.0, 2), drawn<float>(cells, 0.8, 1.3, 3)};
    const int *list = copied(pores);
    float2 *out = get<float2>(cells);
    float4 *records = get<float4>(cells), *pore_records = get<float4>(listed);
    pack<<<all, 256>>>(rock, records, count);
    pack_pores<<<grid, 256>>>(rock, pore_records, list, listed);
    judge({{"as_it_is", [=] { dissolve_listed<<<grid, 256>>>(rock, out, list, listed); }},
        {"records_of_16_bytes", [=] { dissolve_records<<<grid, 256>>>(records, out, list, listed); }},
        {"records_with_packing_timed", [=] { pack<<<all, 256>>>(rock, records, count); dissolve_records<<<grid, 256>>>(records, out, list, listed); }},
        {"pore_records_in_list_order", [=] { dissolve_pore_records<<<grid, 256>>>(pore_records, out, listed); }}},
        {{reinterpret_cast<float *>(out), 2 * cells}}, [=] { check(cudaMemsetAsync(out, 0, cells * sizeof(float2))); });
}
