// chess_attacks_a_piece_of_any_kind_a_lane, side sorted: a thread takes eight pieces (16 bytes) at once.
#include "../tried.cuh"

using Board = unsigned long long;
enum Piece { PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING, PIECES };

__device__ __forceinline__ Board square_at(int x, int y) { return (x & 7) == x && (y & 7) == y ? 1ull << (y * 8 + x) : 0; }
__device__ __forceinline__ Board ray(int square, int dx, int dy, Board occupied) {
    Board attacked = 0;
    for (Board at = square_at((square & 7) + dx, (square >> 3) + dy); at; at = square_at((square & 7) + dx, (square >> 3) + dy)) {
        attacked |= at;
        if (occupied & at) break;
        square += dy * 8 + dx;
    }
    return attacked;
}
__device__ __forceinline__ Board attacks(int piece, int square, Board occupied) {
    const int x = square & 7, y = square >> 3;
    Board attacked = 0;
    switch (piece) {
        case PAWN: return square_at(x - 1, y + 1) | square_at(x + 1, y + 1);
        case KNIGHT:
            for (int d = -1; d <= 1; d += 2) attacked |= square_at(x - 2, y + d) | square_at(x + 2, y + d) | square_at(x + d, y - 2) | square_at(x + d, y + 2);
            return attacked;
        case KING:
            for (int d = -1; d <= 1; d++) attacked |= square_at(x - 1, y + d) | square_at(x + 1, y + d) | square_at(x, y + d);
            return attacked & ~(1ull << square);
        case BISHOP: return ray(square, 1, 1, occupied) | ray(square, -1, 1, occupied) | ray(square, 1, -1, occupied) | ray(square, -1, -1, occupied);
        case ROOK: return ray(square, 1, 0, occupied) | ray(square, -1, 0, occupied) | ray(square, 0, 1, occupied) | ray(square, 0, -1, occupied);
        default:
            for (int d = 0; d < 9; d++)
                if (d != 4) attacked |= ray(square, d % 3 - 1, d / 3 - 1, occupied);
            return attacked;
    }
}
__global__ void __launch_bounds__(256) chess_attacks_sorted(const unsigned short *__restrict__ pieces, const Board *__restrict__ occupied, Board *__restrict__ out, int count) {
    __shared__ int counts[PIECES];
    __shared__ unsigned short order[256];
    const int t = threadIdx.x, first = blockIdx.x * 256, kind = first + t < count ? pieces[first + t] >> 6 : -1;
    if (t < PIECES) counts[t] = 0;
    __syncthreads();
    int place = kind >= 0 ? atomicAdd(counts + kind, 1) : 0;
    __syncthreads();
    for (int before = 0; before < kind; before++) place += counts[before];
    if (kind >= 0) order[place] = t;
    __syncthreads();
    if (first + t >= count) return;
    const int i = first + order[t], own = pieces[i];
    out[i] = attacks(own >> 6, own & 63, occupied[i / 32]);
}

// Eight pieces a thread (THREADS * 8 a block), in one access; what is sorted is the piece with its place, so that it need not be
// looked up again. SCAN: places from a scan of packed counts (ten bits a kind) in each warp instead of an atomic for each piece.
// STAGED: results go through shared memory and leave 16 bytes an access. Pieces come by whole boards: count is a multiple of 32.
template <int THREADS, bool SCAN, bool STAGED>
__global__ void __launch_bounds__(THREADS) chess_attacks_eight(const unsigned short *__restrict__ pieces, const Board *__restrict__ occupied, Board *__restrict__ out, int count) {
    constexpr int OF_A_BLOCK = THREADS * 8, WARPS = THREADS / 32;
    __shared__ int starts[WARPS][PIECES];  // without SCAN only row 0: counts of the block
    __shared__ unsigned sorted[OF_A_BLOCK];
    __shared__ __align__(16) Board results[STAGED ? OF_A_BLOCK : 1];
    const int t = threadIdx.x, first = blockIdx.x * OF_A_BLOCK, here = min(OF_A_BLOCK, count - first);
    const bool has = t * 8 < here;
    const uint4 eight = has ? *reinterpret_cast<const uint4 *>(pieces + first + t * 8) : make_uint4(0, 0, 0, 0);
    const unsigned words[4] = {eight.x, eight.y, eight.z, eight.w};
    auto piece = [&](int k) { return words[k / 2] >> k % 2 * 16 & 0xffffu; };
    int place[8];
    if (SCAN) {
        const int warp = t / 32, lane = t % 32;
        unsigned long long own = 0;  // how many of each kind this thread has
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            const int shift = 10 * (piece(k) >> 6);
            place[k] = int(own >> shift & 1023), own += has ? 1ull << shift : 0;
        }
        unsigned long long sum = own;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const unsigned long long before = __shfl_up_sync(~0u, sum, step);
            if (lane >= step) sum += before;
        }
        if (lane == 31)
            for (int kind = 0; kind < PIECES; ++kind) starts[warp][kind] = int(sum >> 10 * kind & 1023);
        __syncthreads();
        if (t < 32) {  // starts: kind by kind, warp by warp
            int all = 0;
            if (t < PIECES)
                for (int w = 0; w < WARPS; ++w) { const int c = starts[w][t]; starts[w][t] = all, all += c; }
            int before = all;
#pragma unroll
            for (int step = 1; step < 8; step *= 2) { const int other = __shfl_up_sync(~0u, before, step); if (t >= step) before += other; }
            if (t < PIECES)
                for (int w = 0; w < WARPS; ++w) starts[w][t] += before - all;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; ++k) place[k] += starts[warp][piece(k) >> 6] + int(sum - own >> 10 * (piece(k) >> 6) & 1023);
    } else {
        if (t < PIECES) starts[0][t] = 0;
        __syncthreads();
        if (has)
#pragma unroll
            for (int k = 0; k < 8; ++k) place[k] = atomicAdd(starts[0] + (piece(k) >> 6), 1);
        __syncthreads();
        if (t == 0)
            for (int kind = 0, all = 0; kind < PIECES; ++kind) { const int c = starts[0][kind]; starts[0][kind] = all, all += c; }
        __syncthreads();
        if (has)
#pragma unroll
            for (int k = 0; k < 8; ++k) place[k] += starts[0][piece(k) >> 6];
    }
    if (has)
#pragma unroll
        for (int k = 0; k < 8; ++k) sorted[place[k]] = unsigned(t * 8 + k) << 16 | piece(k);
    __syncthreads();
    for (int p = t; p < here; p += THREADS) {
        const unsigned one = sorted[p], i = one >> 16;
        const Board attacked = attacks(one >> 6 & 1023, one & 63, occupied[(first + i) / 32]);
        if (STAGED) results[i] = attacked;
        else out[first + i] = attacked;
    }
    if (!STAGED) return;
    __syncthreads();
    for (int p = t; p < here / 2; p += THREADS) reinterpret_cast<ulonglong2 *>(out + first)[p] = reinterpret_cast<const ulonglong2 *>(results)[p];
}

int main() {
    const int boards_count = 131072, n = boards_count * 32;
    static const unsigned char KINDS[16] = {ROOK, KNIGHT, BISHOP, QUEEN, KING, BISHOP, KNIGHT, ROOK, PAWN, PAWN, PAWN, PAWN, PAWN, PAWN, PAWN, PAWN};
    std::vector<unsigned short> list(n);
    std::vector<Board> boards(boards_count, 0);
    for (unsigned i = 0; i < boards.size(); i++)
        for (unsigned k = 0, draw = i * 128; k < 32; draw++) {
            const unsigned square = hashed(draw) & 63;
            if (boards[i] >> square & 1) continue;
            boards[i] |= 1ull << square, list[i * 32 + k] = (unsigned short)(square | KINDS[(k * 7 + hashed(i)) % 16] << 6), k++;
        }
    const unsigned short *pieces = copied(list);
    const Board *occupied = copied(boards);
    Board *out = get<Board>(n);
    judge({{"as_it_is", [=] { chess_attacks_sorted<<<n / 256, 256>>>(pieces, occupied, out, n); }},
        {"eight", [=] { chess_attacks_eight<256, false, false><<<n / 2048, 256>>>(pieces, occupied, out, n); }},
        {"eight_staged", [=] { chess_attacks_eight<256, false, true><<<n / 2048, 256>>>(pieces, occupied, out, n); }},
        {"eight_scan", [=] { chess_attacks_eight<256, true, false><<<n / 2048, 256>>>(pieces, occupied, out, n); }},
        {"eight_scan_staged", [=] { chess_attacks_eight<256, true, true><<<n / 2048, 256>>>(pieces, occupied, out, n); }},
        {"eight_scan_staged_64_threads", [=] { chess_attacks_eight<64, true, true><<<n / 512, 64>>>(pieces, occupied, out, n); }}},
        {{reinterpret_cast<unsigned *>(out), size_t(n) * 2}});  // in halves, which a double holds exactly
}
