// coefficients_divided_by_their_steps, side flawed: let a warp take the same way, or make both sides one computation.
#include "../tried.cuh"

// A plane of blocks of 64 coefficients; luma has a table of its own.
__global__ void quantise(const short *coefficients, const unsigned short *tables, short *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, plane = blockIdx.y;
    if (i >= n) return;
    size_t at = static_cast<size_t>(plane) * n + i;
    int step = tables[(plane > 0) * 64 + i % 64], value = coefficients[at];
    out[at] = value < 0 ? -((-value + step / 2) / step) : (value + step / 2) / step;
}

// Rewrites: one division for both signs.
enum Form14 { OF_AMOUNT, OF_SIGNED, OF_UNSIGNED };
template <Form14 FORM>
__global__ void quantise_once(const short *coefficients, const unsigned short *tables, short *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, plane = blockIdx.y;
    if (i >= n) return;
    size_t at = static_cast<size_t>(plane) * n + i;
    int step = tables[(plane > 0) * 64 + i % 64], value = coefficients[at];
    if (FORM == OF_SIGNED) {  // half a step away from zero, then towards it
        out[at] = (value + (value < 0 ? -(step / 2) : step / 2)) / step;
    } else {
        int amount = abs(value) + step / 2;
        amount = FORM == OF_UNSIGNED ? static_cast<int>(static_cast<unsigned>(amount) / static_cast<unsigned>(step)) : amount / step;
        out[at] = value < 0 ? -amount : amount;
    }
}

int main() {
    const int n = 1 << 23;
    const size_t count = size_t(3) * n;
    std::vector<unsigned short> steps(128);
    for (int k = 0; k < 128; ++k) steps[k] = static_cast<unsigned short>(3 + k % 64 + hashed(k + 23) % 40);
    const unsigned short *tables = copied(steps);
    const short *in = drawn<short>(count, -32768, 32768, 1);
    short *out = get<short>(count);
    const dim3 grid(n / 256, 3);
    judge({{"as_it_is", [=] { quantise<<<grid, 256>>>(in, tables, out, n); }},
        {"one_division", [=] { quantise_once<OF_AMOUNT><<<grid, 256>>>(in, tables, out, n); }},
        {"one_signed_division", [=] { quantise_once<OF_SIGNED><<<grid, 256>>>(in, tables, out, n); }},
        {"one_unsigned_division", [=] { quantise_once<OF_UNSIGNED><<<grid, 256>>>(in, tables, out, n); }}}, {{out, count}});
}
