// The occupancy calculator: every element with data-occupancy-calculator becomes one. `calculate` is the same arithmetic as
// gemmprof.analysis.occupancy in Python, over the same table of limits, which the page carries as JSON; a test compares them.
"use strict";
(() => {
  const MAX_BARRIERS_PER_BLOCK = 16;
  const SHARED_MEMORY_STEP = 512;
  const CELL = { threads: 32, registers: 8 };

  const roundUp = (value, unit) => Math.ceil(value / unit) * unit;
  const whole = (value) => value.toLocaleString("en-US");
  const count = (value, noun) => `${whole(value)} ${noun}${value === 1 ? "" : "s"}`;

  // ---- The calculator -------------------------------------------------------------------------------------------------

  // Why no device of the architecture accepts the configuration, "" if one does.
  const beyondALimit = (limits, c) => {
    const most = limits.max_shared_memory_per_block - limits.reserved_shared_memory_per_block;
    if (!limits.shared_memory_configs.includes(c.config)) {
      return `a shared memory configuration of ${whole(c.config)} bytes: `
        + `compute capability ${limits.label} has none such`;
    }
    for (const [what, value, low, high] of [
      ["threads per block", c.threads, 1, limits.max_threads_per_block],
      ["registers per thread", c.registers, 1, limits.max_registers_per_thread],
      ["bytes of shared memory per block", c.shared, 0, most],
      ["barriers per block", c.barriers, 0, MAX_BARRIERS_PER_BLOCK],
    ]) {
      if (!Number.isInteger(value)) return `${what}: give a whole number`;
      const where = `${whole(value)} ${what}: compute capability ${limits.label} allows`;
      if (value > high) return `${where} at most ${whole(high)}`;
      if (value < low) return `${where} ${whole(low)} to ${whole(high)}`;
    }
    return "";
  };

  // Occupancy of { threads, registers, shared, config, barriers }; { problem } for what cannot be. Shared memory and the
  // carve-out in bytes. blocks is 0 where the registers of one block exceed the SM's.
  const calculate = (limits, c) => {
    const problem = beyondALimit(limits, c);
    if (problem) return { problem };
    const warps = Math.ceil(c.threads / limits.warp_size);
    // A warp's registers come in units; each of the SM's four partitions holds whole warps.
    const registersPerWarp = roundUp(c.registers * limits.warp_size, limits.register_allocation_unit);
    const partitions = limits.warp_allocation_granularity;
    const warpsByRegisters =
      Math.floor(Math.floor(limits.registers_per_sm / registersPerWarp) / partitions) * partitions;
    const shared = roundUp(c.shared + limits.reserved_shared_memory_per_block, limits.shared_memory_allocation_unit);
    const blockLimits = {
      registers: Math.floor(warpsByRegisters / warps),
      shared_memory: shared > 0 ? Math.floor(c.config / shared) : limits.max_blocks_per_sm,
      warps: Math.floor(limits.max_warps_per_sm / warps),
      blocks: limits.max_blocks_per_sm,
    };
    if (limits.barriers_limit_occupancy) {
      blockLimits.barriers =
        c.barriers > 0 ? Math.floor(limits.max_barriers_per_sm / c.barriers) : limits.max_blocks_per_sm;
    }
    if (shared > c.config && blockLimits.registers > 0) {
      return {
        problem: `a shared memory configuration of ${whole(c.config)} bytes on compute capability ${limits.label} `
          + `is too small for one block, which takes ${whole(shared)} bytes`,
      };
    }
    const blocks = Math.min(...Object.values(blockLimits));
    const binding = Object.keys(blockLimits).filter((name) => blockLimits[name] === blocks);
    const full = blocks * warps === limits.max_warps_per_sm;
    const limiters = full ? [] : [...new Set(binding.map((name) => (name === "warps" ? "blocks" : name)))].sort();
    return {
      problem: "",
      blocks,
      activeWarps: blocks * warps,
      occupancy: (blocks * warps) / limits.max_warps_per_sm,
      limiters,
      binding,
      blockLimits,
      warps,
      registersPerWarp,
      registersPerBlock: registersPerWarp * warps,
      sharedPerBlock: shared,
    };
  };

  // Resident warps with one value replaced, 0 where the configuration cannot run. A block that outgrows the carve-out
  // gets the smallest one that holds it, as at a launch.
  const residentWarps = (limits, c, name, value) => {
    const changed = { ...c, [name]: value };
    if (name === "shared" && value > c.shared) {
      const enough = limits.shared_memory_configs
        .filter((config) => config >= value + limits.reserved_shared_memory_per_block);
      if (enough.length) changed.config = Math.max(c.config, Math.min(...enough));
    }
    const answer = calculate(limits, changed);
    return answer.problem ? 0 : answer.activeWarps;
  };

  const range = (first, last, step) =>
    Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, index) => first + index * step);

  // The points of one curve: [value, resident warps], the present value among them.
  const curve = (limits, c, name) => {
    const most = limits.max_shared_memory_per_block - limits.reserved_shared_memory_per_block;
    const values = {
      threads: () => range(limits.warp_size, limits.max_threads_per_block, limits.warp_size),
      registers: () => range(1, limits.max_registers_per_thread, 1),
      shared: () => range(0, most, SHARED_MEMORY_STEP),
    }[name]();
    const [low, high] = { threads: [1, limits.max_threads_per_block], registers: [1, limits.max_registers_per_thread], shared: [0, most] }[name];
    const present = Number.isInteger(c[name]) && c[name] >= low && c[name] <= high ? [c[name]] : [];
    const all = [...new Set([...values, ...present])].sort((a, b) => a - b);
    return all.map((value) => [value, residentWarps(limits, c, name, value)]);
  };

  // ---- Drawing --------------------------------------------------------------------------------------------------------

  const SVG = "http://www.w3.org/2000/svg";
  const shape = (name, attributes, text) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const element = (name, className, text) => {
    const node = document.createElement(name);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  };

  const AREA = { left: 30, right: 16, top: 20, bottom: 34, width: 320, height: 182 };
  const TICKS = {
    threads: [32, 256, 512, 768, 1024],
    registers: [1, 64, 128, 192, 255],
  };
  const AXES = { threads: "threads per block", registers: "registers per thread", shared: "KiB of shared memory per block" };

  const sharedTicks = (most) => {
    const step = most > 128 * 1024 ? 64 * 1024 : 32 * 1024;
    return range(0, most, step);
  };

  const drawCurve = (figure, limits, c, name) => {
    const points = curve(limits, c, name);
    const first = points[0][0], last = points[points.length - 1][0];
    const x = (value) => AREA.left + ((value - first) / (last - first)) * (AREA.width - AREA.left - AREA.right);
    const y = (warps) => AREA.height - AREA.bottom
      - (warps / limits.max_warps_per_sm) * (AREA.height - AREA.top - AREA.bottom);
    const svg = shape("svg", { viewBox: `0 0 ${AREA.width} ${AREA.height}`, role: "img" });
    const quarter = limits.max_warps_per_sm / 4;
    for (const warps of range(0, limits.max_warps_per_sm, quarter)) {
      svg.append(shape("line", { class: "grid", x1: AREA.left, x2: AREA.width - AREA.right, y1: y(warps), y2: y(warps) }));
      svg.append(shape("text", { class: "y", x: AREA.left - 5, y: y(warps) + 4 }, warps));
    }
    const ticks = TICKS[name] ?? sharedTicks(last);
    for (const value of ticks) {
      const text = name === "shared" ? value / 1024 : value;
      svg.append(shape("text", { class: "x", x: x(value), y: AREA.height - AREA.bottom + 15 }, text));
    }
    svg.append(shape("text", { class: "axis", x: (AREA.left + AREA.width) / 2, y: AREA.height - 4 }, AXES[name]));
    svg.append(shape("text", { x: 0, y: 10 }, "warps per SM"));
    // Steps: what lies between two points is rounded up to the second.
    let path = "";
    points.forEach(([value, warps], index) => {
      path += index === 0 ? `M${x(value)} ${y(warps)}` : `V${y(warps)}H${x(value)}`;
    });
    svg.append(shape("path", { class: "line", d: path }));
    const here = points.find(([value]) => value === c[name]);
    if (here) {
      svg.append(shape("line", { class: "here", x1: x(here[0]), x2: x(here[0]), y1: AREA.top, y2: AREA.height - AREA.bottom }));
      svg.append(shape("circle", { class: "here", cx: x(here[0]), cy: y(here[1]), r: 4.5 }));
      svg.setAttribute("aria-label", `Warps over ${AXES[name]}; at ${whole(here[0])} there are ${here[1]}`);
    }
    figure.querySelector("svg")?.remove();
    figure.prepend(svg);
  };

  const GRID = { left: 46, right: 18, top: 4, width: 680, height: 360, bottom: 42 };

  const gridRows = (limits) => [...range(CELL.registers, limits.max_registers_per_thread, CELL.registers), limits.max_registers_per_thread];
  const gridColumns = (limits) => range(CELL.threads, limits.max_threads_per_block, CELL.threads);

  // Registers downwards, threads to the right; the cell of the present point is outlined.
  const drawGrid = (box, limits, c) => {
    const rows = gridRows(limits), columns = gridColumns(limits);
    const width = (GRID.width - GRID.left - GRID.right) / columns.length;
    const height = (GRID.height - GRID.top - GRID.bottom) / rows.length;
    const svg = shape("svg", { viewBox: `0 0 ${GRID.width} ${GRID.height}`, "aria-hidden": "true" });
    rows.forEach((registers, row) => {
      columns.forEach((threads, column) => {
        const answer = calculate(limits, { ...c, registers, threads });
        const part = answer.problem ? 0 : answer.occupancy;
        svg.append(shape("rect", {
          class: part > 0 ? "cell" : "cell none", "fill-opacity": (0.06 + 0.94 * part).toFixed(3),
          x: GRID.left + column * width, y: GRID.top + row * height, width: width - 0.6, height: height - 0.6,
          "data-threads": threads, "data-registers": registers,
        }));
      });
    });
    for (const row of [0, 7, 15, 23, rows.length - 1]) {
      svg.append(shape("text", { class: "y", x: GRID.left - 5, y: GRID.top + (row + 0.5) * height + 4 }, rows[row]));
    }
    for (const column of [0, 7, 15, 23, 31]) {
      svg.append(shape("text", { class: "x", x: GRID.left + (column + 0.5) * width, y: GRID.height - GRID.bottom + 18 }, columns[column]));
    }
    svg.append(shape("text", { class: "axis", x: (GRID.left + GRID.width) / 2, y: GRID.height - 4 },
      "threads per block →, registers per thread ↓"));
    const row = rows.findIndex((registers) => registers >= c.registers);
    const column = columns.findIndex((threads) => threads >= c.threads);
    if (row >= 0 && column >= 0) {
      svg.append(shape("rect", { class: "here", x: GRID.left + column * width - 1, y: GRID.top + row * height - 1,
        width: width + 1.4, height: height + 1.4 }));
    }
    box.querySelector("svg")?.remove();
    box.prepend(svg);
  };

  const RESOURCES = { registers: "Registers", shared_memory: "Shared memory", warps: "Warps", blocks: "Blocks", barriers: "Barriers" };

  // What a block takes of each resource, and what there is of it.
  const takes = (limits, c, answer) => ({
    registers: [`${whole(answer.registersPerBlock)}`, `${whole(limits.registers_per_sm)}`],
    shared_memory: [`${whole(answer.sharedPerBlock)} B`, `${whole(c.config)} B`],
    warps: [`${answer.warps}`, `${limits.max_warps_per_sm}`],
    blocks: ["1", `${limits.max_blocks_per_sm}`],
    barriers: [`${c.barriers}`, `${limits.max_barriers_per_sm}`],
  });

  const drawTable = (body, limits, c, answer) => {
    const rows = Object.entries(answer.blockLimits).map(([name, blocks]) => {
      const binds = answer.binding.includes(name);
      const row = element("tr", binds ? (answer.occupancy < 1 ? "binding" : "full") : "");
      const head = element("th", "", RESOURCES[name]);
      head.scope = "row";
      const [taken, there] = takes(limits, c, answer)[name];
      if (binds) head.append(" ", element("span", "mark", "limits"));
      row.append(head, element("td", "n", taken), element("td", "n", there), element("td", "n", whole(blocks)));
      return row;
    });
    body.replaceChildren(...rows);
  };

  // ---- One calculator on the page -------------------------------------------------------------------------------------

  const FIELDS = ["arch", "threads", "registers", "shared", "config", "barriers"];
  const LARGEST = "largest";

  // The values of a link to the calculator with this id, null where the fragment is the page's.
  const linkValues = (id) => {
    const [name, values] = location.hash.slice(1).split("?");
    return name === id && values !== undefined ? Object.fromEntries(new URLSearchParams(values)) : null;
  };

  const start = (root) => {
    const table = JSON.parse(root.querySelector("[data-occupancy-limits]").textContent);
    const byLabel = new Map(table.map((limits) => [limits.label, limits]));
    const part = (name) => root.querySelector(`[data-part="${name}"]`);
    const input = (name) => root.querySelector(`[name="${name}"]`);
    const preset = Object.fromEntries(FIELDS.map((name) => [name, root.dataset[name]]));

    const limitsNow = () => byLabel.get(input("arch").value);
    const numberIn = (name) => {
      const text = input(name).value.trim();
      return text === "" ? NaN : Number(text);
    };
    const configuration = () => {
      const config = input("config").value;
      return {
        threads: numberIn("threads"),
        registers: numberIn("registers"),
        shared: numberIn("shared"),
        config: config === LARGEST ? limitsNow().shared_memory_configs[0] : Number(config),
        barriers: numberIn("barriers"),
      };
    };

    // The carve-outs of the chosen architecture; one that the next architecture lacks gives way to the largest.
    const fillConfigs = (wanted) => {
      const limits = limitsNow(), select = input("config");
      const kib = (bytes) => `${whole(bytes / 1024)} KiB`;
      select.replaceChildren(
        new Option(`largest (${kib(limits.shared_memory_configs[0])})`, LARGEST),
        ...limits.shared_memory_configs.map((config) => new Option(kib(config), config)),
      );
      select.value = wanted;
      if (select.selectedIndex < 0) select.value = LARGEST;
    };

    const bounds = () => {
      const limits = limitsNow();
      const most = limits.max_shared_memory_per_block - limits.reserved_shared_memory_per_block;
      for (const [name, max] of [["threads", limits.max_threads_per_block], ["registers", limits.max_registers_per_thread], ["shared", most]]) {
        input(name).max = max;
        part(`${name}-slider`).max = max;
      }
      input("barriers").disabled = !limits.barriers_limit_occupancy;
    };

    const setAll = (values) => {
      input("arch").value = byLabel.has(values.arch) ? values.arch : preset.arch;
      fillConfigs(values.config ?? LARGEST);
      for (const name of ["threads", "registers", "shared", "barriers"]) input(name).value = values[name] ?? preset[name];
      draw();
    };

    const fragment = () => {
      const values = new URLSearchParams(FIELDS.map((name) => [name, input(name).value]));
      return `#${root.id}?${values}`;
    };

    const draw = () => {
      const limits = limitsNow(), c = configuration(), answer = calculate(limits, c);
      bounds();
      for (const name of ["threads", "registers", "shared"]) {
        if (Number.isInteger(c[name])) part(`${name}-slider`).value = c[name];
      }
      const impossible = answer.problem !== "";
      part("problem").hidden = !impossible;
      part("problem").textContent = answer.problem;
      part("answer").hidden = impossible;
      part("limits").hidden = impossible;
      for (const name of ["threads", "registers", "shared", "barriers"]) {
        const valid = Number.isInteger(c[name]) && c[name] >= Number(input(name).min) && c[name] <= Number(input(name).max);
        input(name).setAttribute("aria-invalid", String(!valid));
      }
      if (!impossible) {
        part("percent").textContent = `${(100 * answer.occupancy).toFixed(1)} %`;
        part("blocks").textContent = answer.blocks
          ? `${count(answer.blocks, "block")} per SM, ${answer.activeWarps} of ${limits.max_warps_per_sm} warps`
          : "No block fits: its registers exceed the SM's, the launch fails";
        part("meter").setAttribute("width", (100 * answer.occupancy).toFixed(3));
        drawTable(part("rows"), limits, c, answer);
      }
      for (const name of ["threads", "registers", "shared"]) drawCurve(part(`${name}-curve`), limits, c, name);
      drawGrid(part("grid"), limits, c);
      part("link").href = fragment();
    };

    let scheduled = false;
    const changed = () => {
      if (scheduled) return;
      scheduled = true;
      requestAnimationFrame(() => {
        scheduled = false;
        draw();
        history.replaceState(null, "", fragment());
      });
    };

    for (const limits of table) input("arch").append(new Option(`${limits.label} – ${limits.products}`, limits.label));
    input("arch").addEventListener("change", () => { fillConfigs(input("config").value); changed(); });
    for (const name of ["threads", "registers", "shared", "config", "barriers"]) input(name).addEventListener("input", changed);
    for (const name of ["threads", "registers", "shared"]) {
      part(`${name}-slider`).addEventListener("input", (event) => {
        input(name).value = event.target.value;
        changed();
      });
    }
    part("reset").addEventListener("click", () => { setAll(preset); history.replaceState(null, "", fragment()); });
    part("link").addEventListener("click", async (event) => {
      // A click copies; the address bar has the link in any case, and without a clipboard it stays an ordinary link.
      if (!navigator.clipboard) return;
      event.preventDefault();
      const address = new URL(fragment(), location.href).href;
      history.replaceState(null, "", fragment());
      try {
        await navigator.clipboard.writeText(address);
        part("copied").textContent = "Copied";
      } catch {
        part("copied").textContent = "It is in the address bar";
      }
      setTimeout(() => { part("copied").textContent = ""; }, 2000);
    });
    root.querySelector("form").addEventListener("submit", (event) => event.preventDefault());

    const grid = part("grid");
    const tell = (threads, registers) => {
      const answer = calculate(limitsNow(), { ...configuration(), threads, registers });
      const result = answer.problem || `${(100 * answer.occupancy).toFixed(1)} %, ${count(answer.blocks, "block")}`;
      part("readout").textContent = `${threads} threads, ${registers} registers: ${result}`;
    };
    const take = (threads, registers) => {
      input("threads").value = threads;
      input("registers").value = registers;
      tell(threads, registers);
      changed();
    };
    grid.addEventListener("pointermove", (event) => {
      const { threads, registers } = event.target.dataset;
      if (threads) tell(Number(threads), Number(registers));
    });
    grid.addEventListener("click", (event) => {
      const { threads, registers } = event.target.dataset;
      if (threads) take(Number(threads), Number(registers));
    });
    grid.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!step) return;
      event.preventDefault();
      const limits = limitsNow(), rows = gridRows(limits), columns = gridColumns(limits), c = configuration();
      const at = (list, value) => Math.max(0, list.findIndex((item) => item >= value));
      const column = Math.min(columns.length - 1, Math.max(0, at(columns, c.threads) + step[0]));
      const row = Math.min(rows.length - 1, Math.max(0, at(rows, c.registers) + step[1]));
      take(columns[column], rows[row]);
    });

    const fromFragment = () => {
      const values = linkValues(root.id);
      if (values) setAll({ ...preset, ...values });
      return values !== null;
    };
    if (!fromFragment()) setAll(preset);
    addEventListener("hashchange", fromFragment);
    root.dataset.ready = "true";
  };

  // A report in one file has a calculator on each of its pages: each starts when it is opened, or by a link. On a
  // kernel's page it lies in a closed <details>, so that drawing it moves nothing that a link leads to.
  const startAll = () => {
    const waiting = new Set(document.querySelectorAll("[data-occupancy-calculator]:not([data-ready])"));
    const begin = (root) => {
      if (waiting.delete(root)) start(root);
    };
    const observer = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (entry.isIntersecting) { observer.unobserve(entry.target); begin(entry.target); }
      }
    }, { rootMargin: "800px" });
    for (const root of waiting) observer.observe(root);
    const byLink = () => {
      for (const root of waiting) {
        if (linkValues(root.id)) {
          const closed = root.closest("details");
          if (closed) closed.open = true;
          begin(root);
          root.scrollIntoView();
        }
      }
    };
    byLink();
    addEventListener("hashchange", byLink);
  };
  globalThis.gemmprofOccupancy = { calculate, residentWarps, curve };
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", startAll);
  else startAll();
})();
