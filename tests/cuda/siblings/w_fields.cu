// Elections, medicines, nerves, pictures, charts, clouds and spectra.
#include <cmath>
#include <random>

#include "../pairs/pair.cuh"

namespace {

// --- which candidates beat which, over others ---

constexpr int CANDIDATES = 32;

// The strongest chain of wins from each candidate to each other; a chain is as strong as its weakest win.
__global__ void __launch_bounds__(128) strongest(const unsigned *__restrict__ wins, unsigned *__restrict__ chains) {
    __shared__ unsigned chain[CANDIDATES][CANDIDATES], to[CANDIDATES], from[CANDIDATES];
    const int column = threadIdx.x & 31, first = threadIdx.x >> 5;
    const size_t election = static_cast<size_t>(blockIdx.x) * CANDIDATES * CANDIDATES;
    for (int row = first; row < CANDIDATES; row += 4) chain[row][column] = wins[election + row * CANDIDATES + column];
    __syncthreads();
    for (int over = 0; over < CANDIDATES; over++) {
        if (first == 0) from[column] = chain[over][column];
        if (first == 1) to[column] = chain[column][over];
        __syncthreads();
        for (int row = first; row < CANDIDATES; row += 4) chain[row][column] = max(chain[row][column], min(to[row], from[column]));
        __syncthreads();
    }
    for (int row = first; row < CANDIDATES; row += 4) chains[election + row * CANDIDATES + column] = chain[row][column];
}
// An election a warp, a column in a lane's registers; the one gone over is handed on in shared memory.
__global__ void __launch_bounds__(128) strongest_handed(const unsigned *__restrict__ wins, unsigned *__restrict__ chains) {
    __shared__ uint4 handed[4][CANDIDATES / 4];
    const int column = threadIdx.x & 31;
    uint4 *to = handed[threadIdx.x >> 5];
    const size_t election = static_cast<size_t>(blockIdx.x * 4 + (threadIdx.x >> 5)) * CANDIDATES * CANDIDATES;
    unsigned chain[CANDIDATES];
#pragma unroll
    for (int row = 0; row < CANDIDATES; row++) chain[row] = wins[election + row * CANDIDATES + column];
#pragma unroll
    for (int over = 0; over < CANDIDATES; over++) {
        if (column == over)
#pragma unroll
            for (int k = 0; k < CANDIDATES / 4; k++) to[k] = make_uint4(chain[4 * k], chain[4 * k + 1], chain[4 * k + 2], chain[4 * k + 3]);
        __syncwarp();
        const unsigned from = chain[over];
#pragma unroll
        for (int k = 0; k < CANDIDATES / 4; k++) {
            const uint4 four = to[k];
            chain[4 * k] = max(chain[4 * k], min(four.x, from));
            chain[4 * k + 1] = max(chain[4 * k + 1], min(four.y, from));
            chain[4 * k + 2] = max(chain[4 * k + 2], min(four.z, from));
            chain[4 * k + 3] = max(chain[4 * k + 3], min(four.w, from));
        }
        __syncwarp();
    }
#pragma unroll
    for (int row = 0; row < CANDIDATES; row++) chains[election + row * CANDIDATES + column] = chain[row];
}
// The same by shuffles.
__global__ void __launch_bounds__(128) strongest_lanes(const unsigned *__restrict__ wins, unsigned *__restrict__ chains) {
    const int column = threadIdx.x & 31;
    const size_t election = static_cast<size_t>(blockIdx.x * 4 + (threadIdx.x >> 5)) * CANDIDATES * CANDIDATES;
    unsigned chain[CANDIDATES];
#pragma unroll
    for (int row = 0; row < CANDIDATES; row++) chain[row] = wins[election + row * CANDIDATES + column];
#pragma unroll
    for (int over = 0; over < CANDIDATES; over++) {
        const unsigned from = chain[over];
#pragma unroll
        for (int row = 0; row < CANDIDATES; row++) chain[row] = max(chain[row], min(__shfl_sync(~0u, chain[row], over), from));
    }
#pragma unroll
    for (int row = 0; row < CANDIDATES; row++) chains[election + row * CANDIDATES + column] = chain[row];
}

Study elections("chains_of_wins_two_barriers_a_candidate", "elections", 32768, "strongest chains of wins between 32 candidates of 32768 elections",
    "four warps wait for each other twice for each candidate of a small table",
    {{"handed", "an election a warp, columns in registers, the one gone over in shared memory", {"barriers"}}, {"lanes", "an election a warp, columns in registers, shuffles", {"barriers"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned *wins = b.random<unsigned>(n * CANDIDATES * CANDIDATES, 0.0, 900000.0);
        unsigned *chains = b.output<unsigned>(n * CANDIDATES * CANDIDATES);
        b.tolerance = 0.0;
        return {{"flawed", launch(strongest, n, 128, 0, wins, chains)}, {"handed", launch(strongest_handed, n / 4, 128, 0, wins, chains)}, {"lanes", launch(strongest_lanes, n / 4, 128, 0, wins, chains)}};
    });

// --- what is left of medicines in the blood ---

constexpr int DOSES = 36;

struct Plan {
    float dose[DOSES];  // each so many hours after the one before
    float hours;
};
struct Patient {
    double taken_up, broken_down;  // an hour
};

__global__ void blood_levels(const Patient *__restrict__ patients, double *__restrict__ levels, Plan plan, int count) {
    const int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i >= count) return;
    const Patient p = patients[i];
    double level = 0.0;
    for (int d = 0; d < DOSES; d++) {
        const double since = plan.hours * (DOSES - d);
        level += plan.dose[d] * (exp(-p.broken_down * since) - exp(-p.taken_up * since));
    }
    levels[i] = level * p.taken_up / (p.taken_up - p.broken_down);
}
__global__ void blood_levels_on(const Patient *__restrict__ patients, double *__restrict__ levels, Plan plan, int count) {
    const int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i >= count) return;
    const Patient p = patients[i];
    const double slow = exp(-p.broken_down * plan.hours), quick = exp(-p.taken_up * plan.hours);
    double blood = 0.0, gut = 0.0;
    for (int d = 0; d < DOSES; d++) {
        blood = (blood + plan.dose[d]) * slow;
        gut = (gut + plan.dose[d]) * quick;
    }
    levels[i] = (blood - gut) * p.taken_up / (p.taken_up - p.broken_down);
}

Study medicine("blood_levels_exponentials_for_each_dose", "medicine", 1 << 18, "levels of a medicine in 262144 patients after 36 doses, FP64",
    "two exponentials for each dose, though doses follow each other by the same time",
    {{"carried_on", "two exponentials a patient, levels carried on from dose to dose", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Patient> list(n);
        for (long i = 0; i < n; i++) list[i] = {0.4 + 1e-3 * (hash(static_cast<unsigned>(2 * i)) % 900), 0.02 + 1e-4 * (hash(static_cast<unsigned>(2 * i + 1)) % 900)};
        Plan plan = {};
        plan.hours = 8.0f;
        for (int d = 0; d < DOSES; d++) plan.dose[d] = static_cast<float>(50 + 25 * (d % 3));
        const Patient *patients = b.copy(list);
        double *levels = b.output<double>(n);
        b.tolerance = 1e-9;
        const int count = static_cast<int>(n);
        return {{"flawed", launch(blood_levels, blocks(n, 192), 192, 0, patients, levels, plan, count)}, {"carried_on", launch(blood_levels_on, blocks(n, 192), 192, 0, patients, levels, plan, count)}};
    });

// --- nerve cells in whole numbers, as a chip for them has it ---

constexpr int TICKS = 48;

struct Drive {
    int of[TICKS];
};

__global__ void __launch_bounds__(192) nerves(const short *currents, int *charge, int *tired, int *fired, Drive drive, int cells) {
    const int cell = blockIdx.x * 192 + threadIdx.x;
    if (cell >= cells) return;
    int tick = 0;
    while (tick < TICKS) {
        charge[cell] += currents[cell] + drive.of[tick] - (charge[cell] >> 5) - tired[cell];
        tired[cell] -= tired[cell] >> 4;
        if (charge[cell] > 12000) {
            charge[cell] -= 15000;
            tired[cell] += 600;
            fired[cell]++;
        }
        tick++;
    }
}
__global__ void __launch_bounds__(192) nerves_kept(const short *__restrict__ currents, int *__restrict__ charge, int *__restrict__ tired, int *__restrict__ fired, Drive drive, int cells) {
    const int cell = blockIdx.x * 192 + threadIdx.x;
    if (cell >= cells) return;
    int full = charge[cell], less = tired[cell], count = fired[cell];
    const int current = currents[cell];
#pragma unroll 4
    for (int tick = 0; tick < TICKS; tick++) {
        full += current + drive.of[tick] - (full >> 5) - less;
        less -= less >> 4;
        if (full > 12000) full -= 15000, less += 600, count++;
    }
    charge[cell] = full;
    tired[cell] = less;
    fired[cell] = count;
}

Study cells("nerves_back_to_memory_each_tick", "neuroscience", 1500000, "charges of 1500000 nerve cells and how often they fired, 48 ticks, whole numbers",
    "a cell's state is read from memory and written back at each tick",
    {{"kept", "the state in registers for all ticks", {"redundant_loads", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<short> list(n);
        for (long i = 0; i < n; i++) list[i] = static_cast<short>(200 + hash(static_cast<unsigned>(i)) % 2400);
        const short *currents = b.copy(list);
        int *charge = b.changed<int>(b.random<int>(n, -3000, 12000), n), *tired = b.changed<int>(b.random<int>(n, 0, 500), n), *fired = b.output<int>(n, true);
        Drive drive = {};
        for (int tick = 0; tick < TICKS; tick++) drive.of[tick] = static_cast<int>(hash(tick) % 700);
        b.tolerance = 0.0;
        const int count = static_cast<int>(n);
        return {{"flawed", launch(nerves, blocks(n, 192), 192, 0, currents, charge, tired, fired, drive, count)}, {"kept", launch(nerves_kept, blocks(n, 192), 192, 0, currents, charge, tired, fired, drive, count)}};
    });

// --- seams of pictures that cost least ---

constexpr int SEAM_WIDTH = 512, SEAM_ROWS = 300;

// What the cheapest way from the top to each place of the last row costs, down or one aside at a step.
__global__ void __launch_bounds__(SEAM_WIDTH) seams(const unsigned char *__restrict__ costs, int *__restrict__ ways, int *__restrict__ out) {
    const int x = threadIdx.x, left = max(x - 1, 0), right = min(x + 1, SEAM_WIDTH - 1);
    const unsigned char *at = costs + static_cast<size_t>(blockIdx.x) * SEAM_WIDTH * SEAM_ROWS + x;
    int *above = ways + static_cast<size_t>(blockIdx.x) * 2 * SEAM_WIDTH, *below = above + SEAM_WIDTH;
    above[x] = *at;
    int cost = at[SEAM_WIDTH];
    __syncthreads();
    for (int row = 1; row < SEAM_ROWS; row++) {
        const int own = cost;
        if (row + 1 < SEAM_ROWS) cost = at[(row + 1) * SEAM_WIDTH];
        below[x] = own + min(above[x], min(above[left], above[right]));
        __syncthreads();
        int *const turned = above;
        above = below;
        below = turned;
    }
    out[blockIdx.x * SEAM_WIDTH + x] = above[x];
}
__global__ void __launch_bounds__(SEAM_WIDTH) seams_shared(const unsigned char *__restrict__ costs, int *__restrict__ out) {
    __shared__ int ways[2][SEAM_WIDTH + 2];
    const int x = threadIdx.x;
    const unsigned char *at = costs + static_cast<size_t>(blockIdx.x) * SEAM_WIDTH * SEAM_ROWS + x;
    if (x < 4) ways[x / 2][x % 2 * (SEAM_WIDTH + 1)] = 1 << 30;
    int way = *at, cost = at[SEAM_WIDTH];
    ways[0][x + 1] = way;
    __syncthreads();
    for (int row = 1; row < SEAM_ROWS; row++) {
        const int *above = ways[(row - 1) & 1];
        const int own = cost;
        if (row + 1 < SEAM_ROWS) cost = at[(row + 1) * SEAM_WIDTH];
        way = own + min(way, min(above[x], above[x + 2]));
        ways[row & 1][x + 1] = way;
        __syncthreads();
    }
    out[blockIdx.x * SEAM_WIDTH + x] = way;
}
// Four places a thread in registers, those at the edges of warps in shared memory.
__global__ void __launch_bounds__(SEAM_WIDTH / 4) seams_edges(const uchar4 *__restrict__ costs, int4 *__restrict__ out) {
    constexpr int WARPS = SEAM_WIDTH / 128;
    __shared__ int lefts[2][WARPS + 2], rights[2][WARPS + 2];
    const int x = threadIdx.x, lane = x % 32, warp = x / 32 + 1;
    const uchar4 *at = costs + static_cast<size_t>(blockIdx.x) * (SEAM_WIDTH / 4) * SEAM_ROWS + x;
    if (x < 2) rights[x][0] = lefts[x][WARPS + 1] = 1 << 30;
    uchar4 first = *at, cost = at[SEAM_WIDTH / 4];
    int4 way = make_int4(first.x, first.y, first.z, first.w);
    for (int row = 1; row < SEAM_ROWS; row++) {
        const int side = row & 1;
        if (lane == 0) lefts[side][warp] = way.x;
        if (lane == 31) rights[side][warp] = way.w;
        const uchar4 own = cost;
        if (row + 1 < SEAM_ROWS) cost = at[(row + 1) * (SEAM_WIDTH / 4)];
        int before = __shfl_up_sync(~0u, way.w, 1), after = __shfl_down_sync(~0u, way.x, 1);
        __syncthreads();
        if (lane == 0) before = rights[side][warp - 1];
        if (lane == 31) after = lefts[side][warp + 1];
        const int middle = min(way.y, way.z), start = min(way.x, way.y), end = min(way.z, way.w);
        way = make_int4(own.x + min(before, start), own.y + min(way.x, middle), own.z + min(middle, way.w), own.w + min(end, after));
    }
    out[blockIdx.x * (SEAM_WIDTH / 4) + x] = way;
}

Study seamed("seams_row_after_row_in_global", "photography", 1056, "cheapest seams through 1056 pictures of 512 x 300 costs of a byte",
    "a row reads three places of the last one from global memory and waits for all threads of the block",
    {{"shared", "two rows in shared memory, the own place in a register", {"redundant_loads", "memory_latency"}},
        {"edges", "four places a thread in registers, neighbours by shuffles", {"redundant_loads", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned char *costs = b.random<unsigned char>(n * SEAM_WIDTH * SEAM_ROWS, 0, 256);
        int *ways = b.allocate<int>(n * 2 * SEAM_WIDTH), *out = b.output<int>(n * SEAM_WIDTH);
        b.tolerance = 0.0;
        return {{"flawed", launch(seams, n, SEAM_WIDTH, 0, costs, ways, out)}, {"shared", launch(seams_shared, n, SEAM_WIDTH, 0, costs, out)},
            {"edges", launch(seams_edges, n, SEAM_WIDTH / 4, 0, reinterpret_cast<const uchar4 *>(costs), reinterpret_cast<int4 *>(out))}};
    });

// --- how far listeners' orders are from the charts' ---

constexpr int SONGS = 24;

// [song][listener]: how many pairs of songs a listener has the other way round, far ones counted more.
__global__ void turned_round(const unsigned char *places, unsigned *out, int songs, int listeners) {
    const int who = blockIdx.x * blockDim.x + threadIdx.x;
    if (who >= listeners) return;
    unsigned turned = 0;
    for (int later = 1; later < songs; later++)
        for (int earlier = 0; earlier < later; earlier++)
            if (places[earlier * listeners + who] > places[later * listeners + who]) turned += later - earlier;
    out[who] = turned;
}
__global__ void __launch_bounds__(256) turned_round_registers(const unsigned char *__restrict__ places, unsigned *__restrict__ out, int listeners) {
    const int who = blockIdx.x * 256 + threadIdx.x;
    if (who >= listeners) return;
    int place[SONGS];
#pragma unroll
    for (int song = 0; song < SONGS; song++) place[song] = places[song * listeners + who];
    unsigned turned = 0;
#pragma unroll
    for (int later = 1; later < SONGS; later++)
#pragma unroll
        for (int earlier = 0; earlier < later; earlier++)
            if (place[earlier] > place[later]) turned += later - earlier;
    out[who] = turned;
}
__global__ void __launch_bounds__(256) turned_round_shared(const unsigned char *__restrict__ places, unsigned *__restrict__ out, int listeners) {
    __shared__ unsigned char place[SONGS][256];
    const int who = blockIdx.x * 256 + threadIdx.x, t = threadIdx.x;
    if (who >= listeners) return;
    for (int song = 0; song < SONGS; song++) place[song][t] = places[song * listeners + who];
    unsigned turned = 0;
    for (int later = 1; later < SONGS; later++) {
        const int own = place[later][t];
        for (int earlier = 0; earlier < later; earlier++)
            if (place[earlier][t] > own) turned += later - earlier;
    }
    out[who] = turned;
}

Study charts("orders_of_songs_read_for_each_pair", "music", 1 << 20, "how far the orders of 24 songs by 1048576 listeners are from the charts",
    "a listener's places are fetched again for each pair of songs",
    {{"registers", "places in registers, loops unrolled", {"redundant_loads"}}, {"shared", "places in shared memory", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned char> places(SONGS * n);
        for (long who = 0; who < n; who++) {
            unsigned char order[SONGS];
            for (int song = 0; song < SONGS; song++) order[song] = static_cast<unsigned char>(song);
            for (int k = SONGS - 1; k > 0; k--) std::swap(order[k], order[hash(static_cast<unsigned>(who * SONGS + k)) % (k + 1)]);
            for (int song = 0; song < SONGS; song++) places[song * n + who] = order[song];
        }
        const unsigned char *all = b.copy(places);
        unsigned *out = b.output<unsigned>(n);
        b.tolerance = 0.0;
        const int listeners = static_cast<int>(n);
        return {{"flawed", launch(turned_round, blocks(n, 256), 256, 0, all, out, SONGS, listeners)}, {"registers", launch(turned_round_registers, blocks(n, 256), 256, 0, all, out, listeners)},
            {"shared", launch(turned_round_shared, blocks(n, 256), 256, 0, all, out, listeners)}};
    });

// --- how dense clouds are ---

struct Places {
    const float *x, *y, *z;
};
__device__ __forceinline__ float eased(float t) { return t * t * t * (t * (t * 6.0f - 15.0f) + 10.0f); }
__device__ __forceinline__ float mixed(float a, float b, float share) { return a + share * (b - a); }
// One of twelve directions at a corner, times the way from there.
__device__ __forceinline__ float slope(int corner, float x, float y, float z) {
    const int way = corner & 15;
    const float u = way < 8 ? x : y, v = way < 4 ? y : (way == 12 || way == 14 ? x : z);
    return (way & 1 ? -u : u) + (way & 2 ? -v : v);
}
template <int Copies>
__global__ void __launch_bounds__(256) clouds(const int *__restrict__ order, Places places, float *__restrict__ dense, int count) {
    __shared__ int shuffled[256 * Copies];
    for (int k = threadIdx.x; k < 256 * Copies; k += 256) shuffled[k] = order[k / Copies];
    __syncthreads();
    const int own = threadIdx.x % Copies;
    const auto next = [&](int k) { return shuffled[(k & 255) * Copies + own]; };
    for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) {
        float x = places.x[i], y = places.y[i], z = places.z[i], sum = 0.0f, high = 1.0f;
#pragma unroll 1
        for (int octave = 0; octave < 4; octave++) {
            const float left = floorf(x), front = floorf(y), under = floorf(z), fx = x - left, fy = y - front, fz = z - under;
            const int a = next(static_cast<int>(left)) + static_cast<int>(front), b = next(static_cast<int>(left) + 1) + static_cast<int>(front), k = static_cast<int>(under);
            const int aa = next(a) + k, ab = next(a + 1) + k, ba = next(b) + k, bb = next(b + 1) + k;
            const float u = eased(fx), v = eased(fy), w = eased(fz);
            const float low = mixed(mixed(slope(next(aa), fx, fy, fz), slope(next(ba), fx - 1, fy, fz), u), mixed(slope(next(ab), fx, fy - 1, fz), slope(next(bb), fx - 1, fy - 1, fz), u), v);
            const float top = mixed(mixed(slope(next(aa + 1), fx, fy, fz - 1), slope(next(ba + 1), fx - 1, fy, fz - 1), u),
                mixed(slope(next(ab + 1), fx, fy - 1, fz - 1), slope(next(bb + 1), fx - 1, fy - 1, fz - 1), u), v);
            sum += high * mixed(low, top, w);
            high *= 0.5f, x *= 2.0f, y *= 2.0f, z *= 2.0f;
        }
        dense[i] = fmaxf(sum, 0.0f);
    }
}

Study cloudy("clouds_one_table_for_all_lanes", "games", 1 << 23, "how dense clouds are at 8388608 places, four octaves of noise",
    "lanes look up random words of a table in shared memory: three or four turns a look-up",
    {{"copies", "the table in 32 copies, a bank a lane", {"shared_bank_conflicts"}}, {"eight_copies", "the table in eight copies", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> list(256);
        for (int k = 0; k < 256; k++) list[k] = k;
        for (int k = 255; k > 0; k--) std::swap(list[k], list[hash(k) % (k + 1)]);
        const int *order = b.copy(list);
        const Places places = {b.random<float>(n, 0.0, 200.0), b.random<float>(n, 0.0, 200.0), b.random<float>(n, 0.0, 200.0)};
        float *dense = b.output<float>(n);
        const int grid = 6 * multiprocessors(), count = static_cast<int>(n);
        return {{"flawed", launch(clouds<1>, grid, 256, 0, order, places, dense, count)}, {"copies", launch(clouds<32>, grid, 256, 0, order, places, dense, count)},
            {"eight_copies", launch(clouds<8>, grid, 256, 0, order, places, dense, count)}};
    });

// --- spectra of sign changes ---

constexpr int LINES = 2048;

// Walsh's spectrum of each piece of LINES values, in its place.
__global__ void __launch_bounds__(256) walsh(int *signal) {
    int *piece = signal + static_cast<size_t>(blockIdx.x) * LINES;
    for (int apart = 1; apart < LINES; apart <<= 1) {
        for (int k = threadIdx.x; k < LINES / 2; k += 256) {
            const int i = (k & ~(apart - 1)) * 2 + (k & (apart - 1)), one = piece[i], two = piece[i + apart];
            piece[i] = one + two;
            piece[i + apart] = one - two;
        }
        __syncthreads();
    }
}
__global__ void __launch_bounds__(256) walsh_shared(int *__restrict__ signal) {
    __shared__ int piece[LINES];
    int *own = signal + static_cast<size_t>(blockIdx.x) * LINES;
    for (int k = threadIdx.x; k < LINES; k += 256) piece[k] = own[k];
    __syncthreads();
    for (int apart = 1; apart < LINES; apart <<= 1) {
        for (int k = threadIdx.x; k < LINES / 2; k += 256) {
            const int i = (k & ~(apart - 1)) * 2 + (k & (apart - 1)), one = piece[i], two = piece[i + apart];
            piece[i] = one + two;
            piece[i + apart] = one - two;
        }
        __syncthreads();
    }
    for (int k = threadIdx.x; k < LINES; k += 256) own[k] = piece[k];
}
__device__ __forceinline__ void three_steps(int (&v)[8]) {
#pragma unroll
    for (int apart = 1; apart < 8; apart *= 2)
#pragma unroll
        for (int k = 0; k < 8; k++)
            if (!(k & apart)) {
                const int one = v[k], two = v[k + apart];
                v[k] = one + two;
                v[k + apart] = one - two;
            }
}
// Eight values a thread: three steps in registers, five by shuffles, three in registers again.
__global__ void __launch_bounds__(256) walsh_registers(int *__restrict__ signal) {
    __shared__ int piece[LINES];
    const int t = threadIdx.x, lane = t % 32;
    int *own = signal + static_cast<size_t>(blockIdx.x) * LINES, v[8];
#pragma unroll
    for (int k = 0; k < 8; k++) v[k] = own[256 * k + t];
    three_steps(v);
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2)
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const int other = __shfl_xor_sync(~0u, v[k], apart);
            v[k] = lane & apart ? other - v[k] : v[k] + other;
        }
#pragma unroll
    for (int k = 0; k < 8; k++) piece[256 * k + t] = v[k];
    __syncthreads();
    const int base = t / 32 * 256 + lane;
#pragma unroll
    for (int k = 0; k < 8; k++) v[k] = piece[base + 32 * k];
    three_steps(v);
#pragma unroll
    for (int k = 0; k < 8; k++) own[base + 32 * k] = v[k];
}

Study signs("walsh_spectra_step_by_step_in_global", "signals", 1 << 23, "spectra of sign changes of 4096 pieces of 2048 whole numbers, in place",
    "each of eleven steps reads and writes global memory",
    {{"shared", "the piece in shared memory", {"memory_latency", "redundant_loads"}}, {"registers", "eight values a thread in registers, shuffles for near partners", {"memory_latency", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const int *initial = b.random<int>(n, -500, 500);
        int *signal = b.changed(initial, n);
        b.tolerance = 0.0;
        return {{"flawed", launch(walsh, n / LINES, 256, 0, signal)}, {"shared", launch(walsh_shared, n / LINES, 256, 0, signal)}, {"registers", launch(walsh_registers, n / LINES, 256, 0, signal)}};
    });

// --- what is brighter around each pixel ---

// A bit for each of the 24 pixels around that are brighter; the picture has two more on each side.
__global__ void around(const unsigned char *picture, unsigned *out, int width, int height) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const int pitch = width + 4;
    unsigned bits = 0;
    for (int dy = 0; dy < 5; dy++)
        for (int dx = 0; dx < 5; dx++) {
            if (dx == 2 && dy == 2) continue;
            bits = bits << 1 | (picture[(y + dy) * pitch + x + dx] > picture[(y + 2) * pitch + x + 2]);
        }
    out[y * width + x] = bits;
}
__global__ void __launch_bounds__(256) around_shared(const unsigned char *__restrict__ picture, unsigned *__restrict__ out, int width) {
    __shared__ unsigned char tile[12][72];
    const int pitch = width + 4, first = blockIdx.y * 8 * pitch + blockIdx.x * 64;
    for (int k = threadIdx.y * 32 + threadIdx.x; k < 12 * 17; k += 256)
        *reinterpret_cast<unsigned *>(&tile[k / 17][k % 17 * 4]) = *reinterpret_cast<const unsigned *>(picture + first + k / 17 * pitch + k % 17 * 4);
    __syncthreads();
#pragma unroll
    for (int half = 0; half < 64; half += 32) {
        const int x = threadIdx.x + half;
        const unsigned own = tile[threadIdx.y + 2][x + 2];
        unsigned bits = 0;
#pragma unroll
        for (int k = 0; k < 25; k++)
            if (k != 12) bits = bits << 1 | (tile[threadIdx.y + k / 5][x + k % 5] > own);
        out[(blockIdx.y * 8 + threadIdx.y) * width + blockIdx.x * 64 + x] = bits;
    }
}
// Four pixels a thread, from two words of five rows.
__global__ void __launch_bounds__(256) around_words(const unsigned *__restrict__ picture, uint4 *__restrict__ out, int width) {
    const int quad = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, pitch = width / 4 + 1;
    unsigned words[5][2], bits[4] = {};
#pragma unroll
    for (int dy = 0; dy < 5; dy++) words[dy][0] = picture[(y + dy) * pitch + quad], words[dy][1] = picture[(y + dy) * pitch + quad + 1];
    const auto seen = [&](int dy, int at) { return words[dy][at / 4] >> at % 4 * 8 & 255; };
#pragma unroll
    for (int k = 0; k < 25; k++)
#pragma unroll
        for (int p = 0; p < 4; p++)
            if (k != 12) bits[p] = bits[p] << 1 | (seen(k / 5, p + k % 5) > seen(2, p + 2));
    out[y * (width / 4) + quad] = make_uint4(bits[0], bits[1], bits[2], bits[3]);
}

Study brighter("brighter_around_25_loads_a_pixel", "vision", 3072, "which of 24 pixels around are brighter, a picture of 4096 x 3072 bytes",
    "25 byte loads a pixel, most of them its neighbours' too",
    {{"shared", "a tile of the picture in shared memory", {"redundant_loads"}}, {"words", "four pixels a thread, from two words of five rows", {"redundant_loads", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const int width = 4096, height = static_cast<int>(n);
        const unsigned char *picture = b.random<unsigned char>(static_cast<size_t>(width + 4) * (height + 4), 0, 256);
        unsigned *out = b.output<unsigned>(static_cast<size_t>(width) * height);
        b.tolerance = 0.0;
        const dim3 block(32, 8);
        return {{"flawed", launch(around, dim3(width / 32, height / 8), block, 0, picture, out, width, height)}, {"shared", launch(around_shared, dim3(width / 64, height / 8), block, 0, picture, out, width)},
            {"words", launch(around_words, dim3(width / 128, height / 8), block, 0, reinterpret_cast<const unsigned *>(picture), reinterpret_cast<uint4 *>(out), width)}};
    });

}  // namespace
