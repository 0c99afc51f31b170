// How often each of 48 words of four to twelve letters occurs in a text, at any place.
#include <string>

#include "../tried/tried.cuh"

constexpr int WORDS = 48, ROOM = 16, LETTERS = 32 << 20;

__global__ void as_it_is(const char *text, int letters, const char *words, const int *lengths, int *counts) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    for (int w = 0; w < WORDS; ++w) {
        const int length = lengths[w];
        if (at + length > letters) continue;
        int i = 0;
        while (i < length && text[at + i] == words[w * ROOM + i]) ++i;
        if (i == length) atomicAdd(&counts[w], 1);
    }
}

constexpr int LONGEST = 12;
__global__ void text_in_registers(const char *text, int letters, const char *words, const int *lengths, int *counts) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    char own[LONGEST];
#pragma unroll
    for (int i = 0; i < LONGEST; ++i) own[i] = at + i < letters ? text[at + i] : 0;
    for (int w = 0; w < WORDS; ++w) {
        const int length = lengths[w];
        if (at + length > letters) continue;
        bool same = true;
#pragma unroll
        for (int i = 0; i < LONGEST; ++i) {
            if (i == length || !same) break;
            same = own[i] == words[w * ROOM + i];
        }
        if (same) atomicAdd(&counts[w], 1);
    }
}
__global__ void first_letter_first(const char *text, int letters, const char *words, const int *lengths, int *counts) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    char own[LONGEST];
#pragma unroll
    for (int i = 0; i < LONGEST; ++i) own[i] = at + i < letters ? text[at + i] : 0;
    for (int w = 0; w < WORDS; ++w) {
        if (own[0] != words[w * ROOM]) continue;
        const int length = lengths[w];
        if (at + length > letters) continue;
        bool same = true;
#pragma unroll
        for (int i = 1; i < LONGEST; ++i) {
            if (i == length || !same) break;
            same = own[i] == words[w * ROOM + i];
        }
        if (same) atomicAdd(&counts[w], 1);
    }
}
// Of each letter a bit for each word that it begins.
__global__ void first_letters_as_bits(const char *text, int letters, const char *words, const unsigned long long *begun, const int *lengths, int *counts) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    char own[LONGEST];
#pragma unroll
    for (int i = 0; i < LONGEST; ++i) own[i] = at + i < letters ? text[at + i] : 0;
    for (unsigned long long left = begun[own[0]]; left; left &= left - 1) {
        const int w = __ffsll(left) - 1, length = lengths[w];
        if (at + length > letters) continue;
        bool same = true;
#pragma unroll
        for (int i = 1; i < LONGEST; ++i) {
            if (i == length || !same) break;
            same = own[i] == words[w * ROOM + i];
        }
        if (same) atomicAdd(&counts[w], 1);
    }
}
__device__ __forceinline__ void compared(unsigned long long left, int at, const char *text, int letters, const char *words, const int *lengths, int *counts) {
    for (; left; left &= left - 1) {
        const int w = __ffsll(left) - 1, length = lengths[w];
        if (at + length > letters) continue;
        int i = 1;
        while (i < length && text[at + i] == words[w * ROOM + i]) ++i;
        if (i == length) atomicAdd(&counts[w], 1);
    }
}
__global__ void letters_behind_the_test(const char *text, int letters, const char *words, const unsigned long long *begun, const int *lengths, int *counts) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    compared(begun[text[at]], at, text, letters, words, lengths, counts);
}
__global__ void two_letters_as_bits(const char *text, int letters, const char *words, const unsigned long long *begun, const unsigned long long *second, const int *lengths, int *counts) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long left = begun[text[at]];
    if (left && at + 1 < letters) left &= second[text[at + 1]];
    compared(left, at, text, letters, words, lengths, counts);
}
__global__ void words_in_shared(const char *text, int letters, const char *words, const int *lengths, int *counts) {
    __shared__ char kept[WORDS * ROOM];
    __shared__ int long_as[WORDS];
    for (int i = threadIdx.x; i < WORDS * ROOM; i += blockDim.x) kept[i] = words[i];
    if (threadIdx.x < WORDS) long_as[threadIdx.x] = lengths[threadIdx.x];
    __syncthreads();
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    for (int w = 0; w < WORDS; ++w) {
        const int length = long_as[w];
        if (at + length > letters) continue;
        int i = 0;
        while (i < length && text[at + i] == kept[w * ROOM + i]) ++i;
        if (i == length) atomicAdd(&counts[w], 1);
    }
}

// For each of the first four places the words, a bit each, that have a letter there: what is left of four looks-up is
// compared in full. A thread takes sixteen places. The masks hold the letters' codes modulo 32, to fit the banks.
constexpr int PLACES = 16;
__device__ __forceinline__ unsigned long long mask_of(const char *words, int place, int letter) {
    unsigned long long mask = 0;
    for (int w = 0; w < WORDS; ++w) mask |= static_cast<unsigned long long>((words[w * ROOM + place] & 31) == letter) << w;
    return mask;
}
__global__ void masks_once(const char *words, unsigned long long *masks) { masks[threadIdx.x] = mask_of(words, threadIdx.x / 32, threadIdx.x % 32); }

template <bool Once>
__device__ __forceinline__ void places_of(const uint4 *__restrict__ text, int letters, const char *__restrict__ words, const unsigned long long *__restrict__ masks, const int *__restrict__ lengths, int *__restrict__ counts) {
    __shared__ unsigned long long with[4][32];
    __shared__ unsigned packed[WORDS][3];
    __shared__ int length[WORDS], found[WORDS];
    const int thread = threadIdx.x;
    if (thread < WORDS) {
        length[thread] = lengths[thread], found[thread] = 0;
        for (int k = 0; k < 3; ++k) packed[thread][k] = reinterpret_cast<const unsigned *>(words)[thread * (ROOM / 4) + k];
    }
    if (thread < 128) with[thread / 32][thread % 32] = Once ? masks[thread] : mask_of(words, thread / 32, thread % 32);
    __syncthreads();
    const int piece = blockIdx.x * 256 + thread, first = piece * PLACES;
    const uint4 own = text[piece], behind = first + PLACES < letters ? text[piece + 1] : uint4{};
    const unsigned part[8] = {own.x, own.y, own.z, own.w, behind.x, behind.y, behind.z, behind.w};
#pragma unroll
    for (int k = 0; k < PLACES; ++k) {
        const unsigned four = k % 4 ? __funnelshift_r(part[k / 4], part[k / 4 + 1], 8 * (k % 4)) : part[k / 4];
        unsigned long long left = with[0][four & 31] & with[1][four >> 8 & 31];
        if (left) left &= with[2][four >> 16 & 31] & with[3][four >> 24 & 31];
        for (; left; left &= left - 1) {
            const int w = __ffsll(left) - 1;
            unsigned here[3] = {four};
#pragma unroll
            for (int q = 1; q < 3; ++q) here[q] = k % 4 ? __funnelshift_r(part[k / 4 + q], part[k / 4 + q + 1], 8 * (k % 4)) : part[k / 4 + q];
            const int more = length[w] - 4;
            const unsigned of_second = more >= 4 ? ~0u : (1u << 8 * more) - 1, of_third = more >= 8 ? ~0u : more > 4 ? (1u << 8 * (more - 4)) - 1 : 0u;
            const unsigned off = (here[0] ^ packed[w][0]) | ((here[1] ^ packed[w][1]) & of_second) | ((here[2] ^ packed[w][2]) & of_third);
            if (!off && first + k + length[w] <= letters) atomicAdd(&found[w], 1);
        }
    }
    __syncthreads();
    if (thread < WORDS && found[thread]) atomicAdd(&counts[thread], found[thread]);
}

__global__ void __launch_bounds__(256) expert(const uint4 *text, int letters, const char *words, const int *lengths, int *counts) {
    places_of<false>(text, letters, words, nullptr, lengths, counts);
}
__global__ void __launch_bounds__(256) masks_made_once(const uint4 *text, int letters, const char *words, const unsigned long long *masks, const int *lengths, int *counts) {
    places_of<true>(text, letters, words, masks, lengths, counts);
}

std::string word(unsigned seed) {
    std::string made;
    for (unsigned i = 0; i < 4 + hashed(seed) % 9; ++i) {  // some letters are more frequent than others
        const unsigned x = hashed(seed * 16 + i + 1000), y = hashed(seed * 16 + i + 70000);
        made += "etaoinshrdlucmfwypvbgkqjxz"[std::min(x % 26, y % 26)];
    }
    return made;
}

int main() {
    std::string text;
    for (unsigned i = 0; text.size() < LETTERS; ++i) text += word(std::min(hashed(2 * i) % 8192, hashed(2 * i + 1) % 8192)) + ' ';
    std::vector<char> read(text.begin(), text.begin() + LETTERS), words(WORDS * ROOM);
    std::vector<int> lengths;
    for (int w = 0; w < WORDS; ++w) {
        const std::string one = word(w * 97 + 5);
        std::copy(one.begin(), one.end(), words.begin() + w * ROOM), lengths.push_back(one.size());
    }
    const char *own = copied(read), *sought = copied(words);
    const int *of = copied(lengths);
    int *counts = get<int>(WORDS);
    unsigned long long *masks = get<unsigned long long>(128);
    std::vector<unsigned long long> bits(256);
    for (int w = 0; w < WORDS; ++w) bits[words[w * ROOM]] |= 1ull << w, bits[128 + words[w * ROOM + 1]] |= 1ull << w;
    const unsigned long long *begun = copied(bits), *second = begun + 128;
    judge({{"as_it_is", [=] { as_it_is<<<LETTERS / 256, 256>>>(own, LETTERS, sought, of, counts); }},
           {"text_in_registers", [=] { text_in_registers<<<LETTERS / 256, 256>>>(own, LETTERS, sought, of, counts); }},
           {"words_in_shared", [=] { words_in_shared<<<LETTERS / 256, 256>>>(own, LETTERS, sought, of, counts); }},
           {"first_letter_first", [=] { first_letter_first<<<LETTERS / 256, 256>>>(own, LETTERS, sought, of, counts); }},
           {"first_letters_as_bits", [=] { first_letters_as_bits<<<LETTERS / 256, 256>>>(own, LETTERS, sought, begun, of, counts); }},
           {"letters_behind_the_test", [=] { letters_behind_the_test<<<LETTERS / 256, 256>>>(own, LETTERS, sought, begun, of, counts); }},
           {"two_letters_as_bits", [=] { two_letters_as_bits<<<LETTERS / 256, 256>>>(own, LETTERS, sought, begun, second, of, counts); }},
           {"expert", [=] { expert<<<LETTERS / PLACES / 256, 256>>>(reinterpret_cast<const uint4 *>(own), LETTERS, sought, of, counts); }},
           {"masks_made_once", [=] {
                masks_once<<<1, 128>>>(sought, masks);
                masks_made_once<<<LETTERS / PLACES / 256, 256>>>(reinterpret_cast<const uint4 *>(own), LETTERS, sought, masks, of, counts);
            }}},
          {{counts, WORDS}}, [=] { check(cudaMemsetAsync(counts, 0, WORDS * sizeof(int))); });
}
