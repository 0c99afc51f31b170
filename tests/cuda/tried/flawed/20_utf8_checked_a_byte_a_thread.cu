// utf8_checked_a_byte_a_thread, side flawed: a thread takes several elements and loads them all before it uses the first.
#include "../tried.cuh"

constexpr int TEXT_PAGE = 4096;
__device__ __forceinline__ bool wrong(unsigned before3, unsigned before2, unsigned before, unsigned now) {
    bool due = before >= 0xc0 || before2 >= 0xe0 || before3 >= 0xf0, goes_on = (now & 0xc0) == 0x80;
    bool bad = now == 0xc0 || now == 0xc1 || now > 0xf4;
    bad |= (before == 0xe0 && now < 0xa0) || (before == 0xed && now >= 0xa0) || (before == 0xf0 && now < 0x90) || (before == 0xf4 && now >= 0x90);
    return bad || due != goes_on;
}
__global__ void __launch_bounds__(256) utf8_errors(const unsigned char *text, int *errors, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    bool found = wrong(i > 2 ? text[i - 3] : 0, i > 1 ? text[i - 2] : 0, i > 0 ? text[i - 1] : 0, text[i]);
    int count = __syncthreads_count(found);
    if (threadIdx.x == 0 && count) atomicAdd(errors + i / TEXT_PAGE, count);
}
// Bytes 256 apart: as many as a page's sixteenths allow.
template <int SEVERAL>
__global__ void __launch_bounds__(256) utf8_errors_several(const unsigned char *text, int *errors, int n) {
    const int first = blockIdx.x * 256 * SEVERAL + threadIdx.x;
    unsigned byte[SEVERAL][4];
#pragma unroll
    for (int k = 0; k < SEVERAL; k++)
#pragma unroll
        for (int b = 0; b < 4; b++) byte[k][b] = first + 256 * k >= b ? text[first + 256 * k - b] : 0;
    int count = 0;
#pragma unroll
    for (int k = 0; k < SEVERAL; k++) count += __syncthreads_count(wrong(byte[k][3], byte[k][2], byte[k][1], byte[k][0]));
    if (threadIdx.x == 0 && count) atomicAdd(errors + first / TEXT_PAGE, count);
}

int main() {
    const int n = 1 << 26;
    std::vector<unsigned char> text;
    text.reserve(n + 4);
    unsigned seed = 37;
    auto random = [&] { return hashed(seed++); };
    auto tail = [&](int count) {
        for (; count > 0; --count) text.push_back(0x80 | random() % 64);
    };
    while (text.size() < size_t(n)) {
        unsigned kind = random() % 1024;
        if (kind < 700) text.insert(text.end(), 3, 'a' + kind % 26);
        else if (kind < 850) text.push_back(0xc2 + kind % 28), tail(1);
        else if (kind < 960) text.push_back(0xe1 + kind % 12), tail(2);
        else if (kind < 1023) text.push_back(0xf1 + kind % 3), tail(3);
        else text.push_back(0x80 | random() % 128), text.push_back(0xe0), text.push_back(0x80 | random() % 64), text.push_back(0x81);
    }
    text.resize(n);
    const unsigned char *bytes = copied(text);
    int *errors = get<int>(n / TEXT_PAGE);
    judge({{"as_it_is", [=] { utf8_errors<<<n / 256, 256>>>(bytes, errors, n); }},
        {"four_elements", [=] { utf8_errors_several<4><<<n / 1024, 256>>>(bytes, errors, n); }},
        {"two_elements", [=] { utf8_errors_several<2><<<n / 512, 256>>>(bytes, errors, n); }}},
        {{errors, n / TEXT_PAGE}}, [=] { check(cudaMemsetAsync(errors, 0, n / TEXT_PAGE * sizeof(int))); });
}
