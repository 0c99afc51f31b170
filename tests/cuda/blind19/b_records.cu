// Meters, ratings, packed goods, matrices of many processes, games and pictures.
#include <cstdint>

#include "../pairs/pair.cuh"

namespace {

// --- a day of electricity meters ---

constexpr int QUARTERS = 96, NIGHT = 24, METERS = 64;

__device__ __forceinline__ float4 load_figures(float total, float peak, float night) {
    return make_float4(total, peak, night / total, total / (QUARTERS * peak));
}
__global__ void __launch_bounds__(128) meter_days(const float *__restrict__ loads, float4 *__restrict__ out, int meters) {
    const int meter = blockIdx.x * 128 + threadIdx.x;
    if (meter >= meters) return;
    float total = 0.0f, peak = 0.0f, night = 0.0f;
    for (int q = 0; q < QUARTERS; q++) {
        const float load = loads[meter * QUARTERS + q];
        total += load;
        peak = fmaxf(peak, load);
        if (q < NIGHT) night += load;
    }
    out[meter] = load_figures(total, peak, night);
}
__global__ void __launch_bounds__(128) meter_days_warps(const float *__restrict__ loads, float4 *__restrict__ out, int meters) {
    const int meter = (blockIdx.x * 128 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (meter >= meters) return;
    const float *own = loads + meter * QUARTERS + lane;
    const float first = own[0], second = own[32], third = own[64];
    const float total = warp_sum(first + second + third), peak = warp_max(fmaxf(first, fmaxf(second, third))), night = warp_sum(lane < NIGHT ? first : 0.0f);
    if (lane == 0) out[meter] = load_figures(total, peak, night);
}
// The days of 64 meters come through shared memory in one piece.
__global__ void __launch_bounds__(METERS) meter_days_staged(const float *__restrict__ loads, float4 *__restrict__ out, int meters) {
    __shared__ float days[METERS][QUARTERS + 1];
    const int first = blockIdx.x * METERS, t = threadIdx.x, count = min(METERS, meters - first) * QUARTERS;
#pragma unroll 16
    for (int k = t; k < count; k += METERS) days[k / QUARTERS][k % QUARTERS] = loads[first * QUARTERS + k];
    __syncthreads();
    if (first + t >= meters) return;
    float total = 0.0f, peak = 0.0f, night = 0.0f;
    for (int q = 0; q < QUARTERS; q++) {
        const float load = days[t][q];
        total += load;
        peak = fmaxf(peak, load);
        if (q < NIGHT) night += load;
    }
    out[first + t] = load_figures(total, peak, night);
}

Study meters("meter_days_a_meter_a_thread", "energy", 262144, "total, peak, night's share and evenness of the days of 262144 meters, 96 quarters of an hour each",
    "a thread walks along its meter's day: lanes are 384 bytes apart",
    {{"warps", "a warp a meter", {"uncoalesced_access"}}, {"staged", "64 days in one piece through shared memory", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const float *loads = b.random<float>(n * QUARTERS, 0.1, 3.0);
        float4 *out = reinterpret_cast<float4 *>(b.output<float>(n * 4));
        return {{"flawed", launch(meter_days, blocks(n, 128), 128, 0, loads, out, n)}, {"warps", launch(meter_days_warps, blocks(n, 4), 128, 0, loads, out, n)},
            {"staged", launch(meter_days_staged, blocks(n, METERS), METERS, 0, loads, out, n)}};
    });

// --- values of loans that wander through ratings ---

constexpr int RATINGS = 32, CHAINS = 4;

template <int PITCH>
__global__ void __launch_bounds__(32 * CHAINS) loan_values(const float *__restrict__ chances, const float *__restrict__ coupons, float *__restrict__ out, int quarters, float discount) {
    __shared__ float own[CHAINS][RATINGS * PITCH], values[CHAINS][RATINGS];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, book = blockIdx.x * CHAINS + warp;
    for (int k = 0; k < RATINGS; k++) own[warp][k * PITCH + lane] = chances[static_cast<size_t>(book) * RATINGS * RATINGS + k * RATINGS + lane];
    const float coupon = coupons[book * RATINGS + lane];
    float value = 1.0f;
    for (int q = 0; q < quarters; q++) {
        values[warp][lane] = value;
        __syncwarp();
        float sum = 0.0f;
        for (int k = 0; k < RATINGS; k++) sum += own[warp][lane * PITCH + k] * values[warp][k];
        value = coupon + discount * sum;
        __syncwarp();
    }
    out[book * RATINGS + lane] = value;
}
// A lane keeps its rating's row in registers; values go round by shuffles.
__global__ void __launch_bounds__(32 * CHAINS) loan_values_registers(const float4 *__restrict__ chances, const float *__restrict__ coupons, float *__restrict__ out, int quarters, float discount) {
    const int lane = threadIdx.x % 32, book = blockIdx.x * CHAINS + threadIdx.x / 32;
    float4 row[RATINGS / 4];
#pragma unroll
    for (int k = 0; k < RATINGS / 4; k++) row[k] = chances[(static_cast<size_t>(book) * RATINGS + lane) * (RATINGS / 4) + k];
    const float coupon = coupons[book * RATINGS + lane];
    float value = 1.0f;
    for (int q = 0; q < quarters; q++) {
        float sum = 0.0f;
#pragma unroll
        for (int k = 0; k < RATINGS / 4; k++) {
            sum += row[k].x * __shfl_sync(~0u, value, 4 * k);
            sum += row[k].y * __shfl_sync(~0u, value, 4 * k + 1);
            sum += row[k].z * __shfl_sync(~0u, value, 4 * k + 2);
            sum += row[k].w * __shfl_sync(~0u, value, 4 * k + 3);
        }
        value = coupon + discount * sum;
    }
    out[book * RATINGS + lane] = value;
}

Study ratings("loan_values_rows_of_32_ratings_in_shared", "finance", 8192, "values of loans in 32 ratings over 24 quarters, 8192 books with chances of their own",
    "each lane walks along its rating's row, and the rows are 32 words apart: all lanes ask one bank",
    {{"padded", "rows 33 words apart", {"shared_bank_conflicts"}}, {"registers", "rows in registers, values by shuffles", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        const float *chances = b.random<float>(n * RATINGS * RATINGS, 0.0, 0.0625), *coupons = b.random<float>(n * RATINGS, 0.0, 0.02);
        float *out = b.output<float>(n * RATINGS);
        return {{"flawed", launch(loan_values<RATINGS>, n / CHAINS, 32 * CHAINS, 0, chances, coupons, out, 24, 0.99f)}, {"padded", launch(loan_values<RATINGS + 1>, n / CHAINS, 32 * CHAINS, 0, chances, coupons, out, 24, 0.99f)},
            {"registers", launch(loan_values_registers, n / CHAINS, 32 * CHAINS, 0, reinterpret_cast<const float4 *>(chances), coupons, out, 24, 0.99f)}};
    });

// --- what knapsacks hold at best ---

constexpr int ROOM = 1024, ITEMS = 96;

__global__ void __launch_bounds__(ROOM) knapsacks(const int2 *__restrict__ items, int *__restrict__ out) {
    __shared__ int best[ROOM];
    __shared__ int2 own[ITEMS];
    const int room = threadIdx.x;
    if (room < ITEMS) own[room] = items[blockIdx.x * ITEMS + room];
    best[room] = 0;
    __syncthreads();
    for (int k = 0; k < ITEMS; k++) {
        const int2 item = own[k];
        const int with = room >= item.x ? best[room - item.x] + item.y : 0;
        __syncthreads();
        if (with > best[room]) best[room] = with;
        __syncthreads();
    }
    out[blockIdx.x * ROOM + room] = best[room];
}
// Items in turn from one array to the other.
__global__ void __launch_bounds__(ROOM) knapsacks_two_arrays(const int2 *__restrict__ items, int *__restrict__ out) {
    __shared__ int best[2][ROOM];
    __shared__ int2 own[ITEMS];
    const int room = threadIdx.x;
    if (room < ITEMS) own[room] = items[blockIdx.x * ITEMS + room];
    int value = 0;
    best[0][room] = 0;
    __syncthreads();
#pragma unroll 2
    for (int k = 0; k < ITEMS; k++) {
        const int2 item = own[k];
        if (room >= item.x) value = max(value, best[k % 2][room - item.x] + item.y);
        best[1 - k % 2][room] = value;
        __syncthreads();
    }
    out[blockIdx.x * ROOM + room] = value;
}
// A warp a knapsack, from full to empty: what is still to be read is not yet changed.
__global__ void __launch_bounds__(256) knapsacks_warps(const int2 *__restrict__ items, int *__restrict__ out, int count) {
    __shared__ int best[8][ROOM];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, sack = blockIdx.x * 8 + warp;
    if (sack >= count) return;
    int own[ROOM / 32];
#pragma unroll
    for (int k = 0; k < ROOM / 32; k++) own[k] = best[warp][k * 32 + lane] = 0;
    __syncwarp();
    int2 next = items[sack * ITEMS];
    for (int i = 0; i < ITEMS; i++) {
        const int2 item = next;
        if (i + 1 < ITEMS) next = items[sack * ITEMS + i + 1];
#pragma unroll
        for (int k = ROOM / 32 - 1; k >= 0; k--) {
            const int from = k * 32 + lane - item.x, with = from >= 0 ? best[warp][from] + item.y : 0;
            __syncwarp();
            if (with > own[k]) own[k] = best[warp][k * 32 + lane] = with;
        }
        __syncwarp();
    }
#pragma unroll
    for (int k = 0; k < ROOM / 32; k++) out[sack * ROOM + k * 32 + lane] = own[k];
}

Study sacks("knapsacks_two_barriers_an_item", "optimisation", 4096, "the best value for each of 1024 sizes of 4096 knapsacks of 96 goods",
    "a block of 1024 threads waits twice for each item",
    {{"arrays", "two arrays in turn: one barrier an item", {"barriers"}}, {"warps", "a warp a knapsack", {"barriers"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int2> list(n * ITEMS);
        for (unsigned k = 0; k < list.size(); k++) list[k] = make_int2(10 + hash(k) % 190, 1 + hash(k ^ 0x5bd1e995u) % 1000);
        const int2 *items = b.copy(list);
        int *out = b.output<int>(n * ROOM);
        b.tolerance = 0.0;
        return {{"flawed", launch(knapsacks, n, ROOM, 0, items, out)}, {"arrays", launch(knapsacks_two_arrays, n, ROOM, 0, items, out)}, {"warps", launch(knapsacks_warps, blocks(n, 8), 256, 0, items, out, n)}};
    });

// --- a matrix dealt out to processes block by block ---

// Piece after piece; a piece holds every down-th block of rows and every across-th block of columns.
__global__ void __launch_bounds__(256) deal_blocks(const float *__restrict__ matrix, float *__restrict__ pieces, long long rows, long long columns, long long side, long long down, long long across) {
    const long long k = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
    if (k >= rows * columns) return;
    const long long row = k / columns, column = k % columns;
    const long long tall = rows / down, wide = columns / across;
    const long long piece = row / side % down * across + column / side % across;
    const long long y = row / (side * down) * side + row % side, x = column / (side * across) * side + column % side;
    pieces[(piece * tall + y) * wide + x] = matrix[k];
}
// Four columns a thread, which lie in one block, and a row of the grid for each row.
__global__ void __launch_bounds__(256) deal_blocks_fours(const float4 *__restrict__ matrix, float4 *__restrict__ pieces, int rows, int columns, int side, int down, int across) {
    const int four = blockIdx.x * 256 + threadIdx.x, row = blockIdx.y;
    if (four * 4 >= columns) return;
    const int row_block = row / side, column_block = four * 4 / side, tall = rows / down, wide = columns / across;
    const int piece = row_block % down * across + column_block % across;
    const int y = row_block / down * side + row - row_block * side, x = column_block / across * side + four * 4 - column_block * side;
    pieces[((piece * tall + y) * wide + x) / 4] = matrix[row * (columns / 4) + four];
}
// Where rows and columns go was worked out once: places add up.
__global__ void __launch_bounds__(256) deal_blocks_tables(const float *__restrict__ matrix, float *__restrict__ pieces, const int *__restrict__ row_places, const int *__restrict__ column_places, int columns) {
    const int column = blockIdx.x * 256 + threadIdx.x, row = blockIdx.y;
    if (column < columns) pieces[row_places[row] + column_places[column]] = matrix[row * columns + column];
}

Study dealt("block_cyclic_pieces_divided_for_each_element", "linear algebra", 4096, "4096 x 4096 values dealt out to two by four processes in blocks of 64 x 64",
    "a dozen quotients and remainders of 64 bits by what is only known at run time, for each element",
    {{"fours", "a row of the grid a row, four columns of 32-bit indices a thread", {"integer_arithmetic", "narrow_access"}}, {"tables", "tables of where each row and each column goes", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        const int side = 64, down = 2, across = 4, tall = n / down, wide = n / across;
        std::vector<int> rows(n), columns(n);
        for (int k = 0; k < n; k++) {
            rows[k] = (k / side % down * across * tall + k / (side * down) * side + k % side) * wide;
            columns[k] = k / side % across * tall * wide + k / (side * across) * side + k % side;
        }
        const float *matrix = b.random<float>(n * n);
        const int *row_places = b.copy(rows), *column_places = b.copy(columns);
        float *pieces = b.output<float>(n * n);
        b.tolerance = 0.0;
        return {{"flawed", launch(deal_blocks, blocks(n * n, 256), 256, 0, matrix, pieces, n, n, side, down, across)},
            {"fours", launch(deal_blocks_fours, dim3(blocks(n, 1024), n), 256, 0, reinterpret_cast<const float4 *>(matrix), reinterpret_cast<float4 *>(pieces), n, n, side, down, across)},
            {"tables", launch(deal_blocks_tables, dim3(blocks(n, 256), n), 256, 0, matrix, pieces, row_places, column_places, n)}};
    });

// --- what seven cards are worth ---

enum Worth { HIGH_CARD, PAIR, TWO_PAIRS, THREE, STRAIGHT, FLUSH, FULL_HOUSE, FOUR, STRAIGHT_FLUSH };

__device__ __forceinline__ int highest(unsigned ranks) { return 31 - __clz(ranks); }
// The highest card of five in a row, of which the ace may be the lowest; -1 where there are none.
__device__ __forceinline__ int straight(unsigned ranks) {
    const unsigned low = ranks << 1 | (ranks >> 12 & 1), five = low & low >> 1 & low >> 2 & low >> 3 & low >> 4;
    return five ? highest(five) + 3 : -1;
}
__device__ __forceinline__ int worth(unsigned any, unsigned flush, int four, int three, int pair, int second) {
    if (flush && straight(flush) >= 0) return STRAIGHT_FLUSH * 16 + straight(flush);
    if (four >= 0) return FOUR * 16 + four;
    if (three >= 0 && pair >= 0) return FULL_HOUSE * 16 + three;
    if (flush) return FLUSH * 16 + highest(flush);
    if (straight(any) >= 0) return STRAIGHT * 16 + straight(any);
    if (three >= 0) return THREE * 16 + three;
    if (second >= 0) return TWO_PAIRS * 16 + pair;
    return pair >= 0 ? PAIR * 16 + pair : HIGH_CARD * 16 + highest(any);
}
// COUNTS and SUITS are arrays or what is indexed like them.
template <typename Counts, typename Suits>
__device__ __forceinline__ int count_cards(uint2 cards, Counts &counts, Suits &suits) {
    for (int r = 0; r < 13; r++) counts[r] = 0;
    for (int s = 0; s < 4; s++) suits[s] = 0;
    for (int k = 0; k < 7; k++) {
        const int card = (k < 4 ? cards.x >> 8 * k : cards.y >> 8 * (k - 4)) & 255;
        counts[card >> 2]++;
        suits[card & 3] |= 1 << (card >> 2);
    }
    unsigned any = 0, flush = 0;
    int four = -1, three = -1, pair = -1, second = -1;
    for (int r = 12; r >= 0; r--) {
        const int count = counts[r];
        if (count) any |= 1u << r;
        if (count == 4) four = r;
        else if (count == 3 && three < 0) three = r;
        else if (count >= 2 && pair < 0) pair = r;
        else if (count >= 2 && second < 0) second = r;
    }
    for (int s = 0; s < 4; s++)
        if (__popc(suits[s]) >= 5) flush = suits[s];
    return worth(any, flush, four, three, pair, second);
}
__global__ void __launch_bounds__(256) poker_hands(const uint2 *__restrict__ hands, int *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    int counts[13], suits[4];
    out[i] = count_cards(hands[i], counts, suits);
}
struct Strip {
    int *own;
    __device__ int &operator[](int k) const { return own[k * 256]; }
};
__global__ void __launch_bounds__(256) poker_hands_shared(const uint2 *__restrict__ hands, int *__restrict__ out, int count) {
    __shared__ int strips[17 * 256];
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    Strip counts{strips + threadIdx.x}, suits{strips + 13 * 256 + threadIdx.x};
    out[i] = count_cards(hands[i], counts, suits);
}
// Thirteen bits for each suit; how many there are of each rank is found for all ranks at once.
__global__ void __launch_bounds__(256) poker_hands_bits(const uint2 *__restrict__ hands, int *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const uint2 cards = hands[i];
    unsigned long long all = 0;
#pragma unroll
    for (int k = 0; k < 7; k++) {
        const unsigned card = (k < 4 ? cards.x >> 8 * k : cards.y >> 8 * (k - 4)) & 255;
        all |= 1ull << ((card & 3) * 16 + (card >> 2));
    }
    const unsigned low = static_cast<unsigned>(all), high = static_cast<unsigned>(all >> 32);
    const unsigned a = low & 0xffff, b = low >> 16, c = high & 0xffff, d = high >> 16;
    const unsigned fours = a & b & c & d, threes = (a & b & (c | d) | c & d & (a | b)) & ~fours, one_three = threes ? 1u << highest(threes) : 0;
    const unsigned twos = (a & b | c & d | (a | b) & (c | d)) & ~fours & ~one_three;
    const int pair = twos ? highest(twos) : -1;
    const unsigned others = twos & ~(twos ? 1u << pair : 0);
    const unsigned flush = __popc(a) >= 5 ? a : __popc(b) >= 5 ? b : __popc(c) >= 5 ? c : __popc(d) >= 5 ? d : 0;
    out[i] = worth(a | b | c | d, flush, fours ? highest(fours) : -1, one_three ? highest(one_three) : -1, pair, others ? highest(others) : -1);
}

Study poker("poker_hands_counts_in_local", "games", 1 << 22, "what 4194304 hands of seven cards are worth",
    "how many cards there are of each rank and suit is counted in arrays that the card indexes: they lie in local memory",
    {{"shared", "arrays as strips of shared memory", {"local_memory"}}, {"bits", "suits as bits, counted for all ranks at once", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<uint2> list(n);
        for (unsigned i = 0; i < list.size(); i++) {
            std::uint64_t taken = 0, packed = 0;
            for (unsigned k = 0, draw = i * 16; k < 7; draw++) {
                const unsigned card = static_cast<unsigned>(static_cast<std::uint64_t>(hash(draw)) * 52 >> 32);
                if (taken >> card & 1) continue;
                taken |= 1ull << card, packed |= static_cast<std::uint64_t>(card) << 8 * k++;
            }
            list[i] = make_uint2(static_cast<unsigned>(packed), static_cast<unsigned>(packed >> 32));
        }
        const uint2 *hands = b.copy(list);
        int *out = b.output<int>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(poker_hands, blocks(n, 256), 256, 0, hands, out, n)}, {"shared", launch(poker_hands_shared, blocks(n, 256), 256, 0, hands, out, n)}, {"bits", launch(poker_hands_bits, blocks(n, 256), 256, 0, hands, out, n)}};
    });

// --- squares that the pieces of chess boards attack ---

using Board = unsigned long long;

enum Piece { PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING, PIECES };

constexpr Board FILE_A = 0x0101010101010101ull, FILE_H = FILE_A << 7, DIAGONAL = 0x8040201008040201ull, ANTIDIAGONAL = 0x0102040810204080ull;

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
// A piece: its square in six bits, its kind above them.
__global__ void __launch_bounds__(256) chess_attacks(const unsigned short *__restrict__ pieces, const Board *__restrict__ occupied, Board *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < count) out[i] = attacks(pieces[i] >> 6, pieces[i] & 63, occupied[i / 32]);
}
// The block's pieces are taken kind by kind.
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
// All squares of a line up to the first piece, by a subtraction from either end.
__device__ __forceinline__ Board line(Board own, Board mask, Board occupied) {
    const Board others = occupied & mask & ~own;
    return (others - 2 * own ^ __brevll(__brevll(others) - 2 * __brevll(own))) & mask & ~own;
}
__global__ void __launch_bounds__(256) chess_attacks_lines(const unsigned short *__restrict__ pieces, const Board *__restrict__ occupied, Board *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const int kind = pieces[i] >> 6, square = pieces[i] & 63, x = square & 7, y = square >> 3;
    const Board all = occupied[i / 32], own = 1ull << square;
    const Board diagonal = y >= x ? DIAGONAL << 8 * (y - x) : DIAGONAL >> 8 * (x - y), antidiagonal = x + y >= 7 ? ANTIDIAGONAL << 8 * (x + y - 7) : ANTIDIAGONAL >> 8 * (7 - x - y);
    const Board slanted = line(own, diagonal, all) | line(own, antidiagonal, all), straight = line(own, FILE_A << x, all) | line(own, 0xffull << 8 * y, all);
    const Board left = own >> 1 & ~FILE_H, right = own << 1 & ~FILE_A, left2 = left >> 1 & ~FILE_H, right2 = right << 1 & ~FILE_A, beside = left | right;
    const Board knight = beside << 16 | beside >> 16 | (left2 | right2) << 8 | (left2 | right2) >> 8, three = beside | own, king = beside | three << 8 | three >> 8;
    Board attacked = 0;
    attacked |= kind == BISHOP || kind == QUEEN ? slanted : 0;
    attacked |= kind == ROOK || kind == QUEEN ? straight : 0;
    attacked |= kind == KNIGHT ? knight : 0;
    attacked |= kind == KING ? king : 0;
    attacked |= kind == PAWN ? beside << 8 : 0;
    out[i] = attacked;
}

Study chess("chess_attacks_a_piece_of_any_kind_a_lane", "games", 131072, "squares that each of 32 pieces of 131072 chess boards attacks",
    "lanes of a warp have pieces of all kinds: one walks eight ways, another looks at two squares",
    {{"sorted", "pieces of a block kind by kind", {"branch_divergence"}}, {"lines", "all squares of a line at once, no piece branches", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        static constexpr unsigned char KINDS[16] = {ROOK, KNIGHT, BISHOP, QUEEN, KING, BISHOP, KNIGHT, ROOK, PAWN, PAWN, PAWN, PAWN, PAWN, PAWN, PAWN, PAWN};
        std::vector<unsigned short> list(n * 32);
        std::vector<Board> boards(n, 0);
        for (unsigned i = 0; i < boards.size(); i++)
            for (unsigned k = 0, draw = i * 128; k < 32; draw++) {
                const unsigned square = hash(draw) & 63;
                if (boards[i] >> square & 1) continue;
                boards[i] |= 1ull << square, list[i * 32 + k] = static_cast<unsigned short>(square | KINDS[(k * 7 + hash(i)) % 16] << 6), k++;
            }
        const unsigned short *pieces = b.copy(list);
        const Board *occupied = b.copy(boards);
        Board *out = reinterpret_cast<Board *>(b.output<unsigned>(n * 64));
        b.tolerance = 0.0;
        return {{"flawed", launch(chess_attacks, blocks(n * 32, 256), 256, 0, pieces, occupied, out, n * 32)}, {"sorted", launch(chess_attacks_sorted, blocks(n * 32, 256), 256, 0, pieces, occupied, out, n * 32)},
            {"lines", launch(chess_attacks_lines, blocks(n * 32, 256), 256, 0, pieces, occupied, out, n * 32)}};
    });

// --- a picture less the mean of its left and upper neighbours ---

constexpr int STRIP = 8;

__global__ void __launch_bounds__(256) picture_filter(const unsigned char *__restrict__ picture, unsigned char *__restrict__ out, int pitch) {
    const int x = blockIdx.x * 256 + threadIdx.x, y = blockIdx.y, at = y * pitch + x;
    const int left = x >= 4 ? picture[at - 4] : 0, above = y > 0 ? picture[at - pitch] : 0;
    out[at] = picture[at] - (left + above) / 2;
}
__device__ __forceinline__ unsigned less_mean(unsigned pixel, unsigned left, unsigned above) { return __vsub4(pixel, __vhaddu4(left, above)); }
__global__ void __launch_bounds__(256) picture_filter_pixels(const unsigned *__restrict__ picture, unsigned *__restrict__ out, int width) {
    const int x = blockIdx.x * 256 + threadIdx.x, y = blockIdx.y, at = y * width + x;
    out[at] = less_mean(picture[at], x > 0 ? picture[at - 1] : 0, y > 0 ? picture[at - width] : 0);
}
// Four pixels a thread, which goes down eight rows: those above are kept.
__global__ void __launch_bounds__(128) picture_filter_strips(const uint4 *__restrict__ picture, uint4 *__restrict__ out, int width) {
    const int x = blockIdx.x * 128 + threadIdx.x, y = blockIdx.y * STRIP, fours = width / 4;
    const unsigned *words = reinterpret_cast<const unsigned *>(picture);
    uint4 above = y > 0 ? picture[(y - 1) * fours + x] : make_uint4(0, 0, 0, 0);
#pragma unroll 4
    for (int row = y; row < y + STRIP; row++) {
        const uint4 own = picture[row * fours + x];
        const unsigned left = x > 0 ? words[row * width + x * 4 - 1] : 0;
        out[row * fours + x] = make_uint4(less_mean(own.x, left, above.x), less_mean(own.y, own.x, above.y), less_mean(own.z, own.y, above.z), less_mean(own.w, own.z, above.w));
        above = own;
    }
}

Study pictures("picture_filter_a_byte_a_thread", "compression", 4096, "4096 x 4096 pixels of four bytes less the mean of those on the left and above, as PNG does before it packs",
    "a thread takes one byte, three loads and a store of which move a byte each",
    {{"pixels", "a pixel of four bytes a thread", {"narrow_access"}}, {"strips", "four pixels a thread and eight rows, those above kept", {"narrow_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned char *picture = b.random<unsigned char>(n * n * 4, 0.0, 256.0);
        unsigned char *out = b.output<unsigned char>(n * n * 4);
        b.tolerance = 0.0;
        return {{"flawed", launch(picture_filter, dim3(n / 64, n), 256, 0, picture, out, n * 4)},
            {"pixels", launch(picture_filter_pixels, dim3(n / 256, n), 256, 0, reinterpret_cast<const unsigned *>(picture), reinterpret_cast<unsigned *>(out), n)},
            {"strips", launch(picture_filter_strips, dim3(n / 512, n / STRIP), 128, 0, reinterpret_cast<const uint4 *>(picture), reinterpret_cast<uint4 *>(out), n)}};
    });

// --- one picture fading into another: without a flaw ---

__device__ __forceinline__ unsigned faded(unsigned from, unsigned to, unsigned share) {
    const unsigned even = ((from & 0xff00ff) * (256 - share) + (to & 0xff00ff) * share >> 8) & 0xff00ff;
    const unsigned odd = ((from >> 8 & 0xff00ff) * (256 - share) + (to >> 8 & 0xff00ff) * share) & 0xff00ff00;
    return even | odd;
}
__global__ void __launch_bounds__(256) cross_fade(const uint4 *__restrict__ from, const uint4 *__restrict__ to, uint4 *__restrict__ out, int count, unsigned share) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const uint4 a = from[i], z = to[i];
    out[i] = make_uint4(faded(a.x, z.x, share), faded(a.y, z.y, share), faded(a.z, z.z, share), faded(a.w, z.w, share));
}

Study fading("sound_cross_fade", "video", 1 << 22, "16777216 pixels of four bytes of one picture fading into those of another", "", {}, [](Buffers &b, long n) -> Sides {
    const auto four = [](const unsigned char *p) { return reinterpret_cast<const uint4 *>(p); };
    const unsigned char *from = b.random<unsigned char>(n * 16, 0.0, 256.0), *to = b.random<unsigned char>(n * 16, 0.0, 256.0);
    return {{"sound", launch(cross_fade, blocks(n, 256), 256, 0, four(from), four(to), reinterpret_cast<uint4 *>(b.output<unsigned char>(n * 16)), n, 77u)}};
});

}  // namespace
