'use strict';
// The board's page. It asks the server for the list of runs every two seconds, and for the series of the chosen runs
// when they have grown. Nothing is kept but what is shown. A run is drawn as soon as its data is here, whatever the
// others do; of a long record the server sends what it has read so far, and the page asks again at once.
(function () {
  const colours = ['#0969da', '#bc4c00', '#1a7f37', '#8250df', '#bf3989', '#6e7781'];
  const darks = ['#58a6ff', '#f0883e', '#3fb950', '#bc8cff', '#f778ba', '#b1bac4'];
  const tabs = ['Curves', 'Machine', 'Hosts and ranks', 'Texts', 'Log', 'Config', 'Book'];
  const dark = window.matchMedia('(prefers-color-scheme: dark)');
  const state = { tab: 'Curves', runs: [], chosen: [], data: new Map(), charts: new Map(), parts: new Map(), first: true,
    loading: new Set(), soon: 0, again: 0 };
  const by = (id) => document.getElementById(id);
  window.addEventListener('error', (e) => { document.body.dataset.error = e.message; });
  window.addEventListener('unhandledrejection', (e) => { document.body.dataset.error = String(e.reason); });

  function make(tag, text, cls) {
    const e = document.createElement(tag);
    if (text !== undefined) e.textContent = text;
    if (cls) e.className = cls;
    return e;
  }

  async function get(path, run, names, more) {
    const query = new URLSearchParams(more);
    if (run !== undefined) query.set('run', run);
    if (names !== undefined) query.set('names', names);
    const answer = await fetch(path + '?' + query, { credentials: 'same-origin' });
    if (!answer.ok) throw new Error(path + ': ' + answer.status);
    return path === '/api/log' ? answer.text() : answer.json();
  }

  function colour(run) {
    const i = Math.max(0, state.chosen.indexOf(run)) % colours.length;
    return (dark.matches ? darks : colours)[i];
  }

  // --- the address: #Log?run=a&run=b opens a tab with these runs
  function readAddress() {
    const [tab, query] = decodeURI(location.hash.slice(1)).split('?');
    if (tabs.includes(tab)) state.tab = tab;
    const chosen = new URLSearchParams(query || '').getAll('run');
    if (chosen.length) { state.chosen = chosen; state.first = false; }
  }

  function writeAddress() {
    const query = new URLSearchParams(state.chosen.map((run) => ['run', run]));
    history.replaceState(null, '', '/#' + encodeURI(state.tab) + '?' + query);
  }

  // --- the list of runs
  function choose(run, on) {
    state.chosen = state.chosen.filter((r) => r !== run);
    if (on) state.chosen.push(run);
    writeAddress();
    drawRuns();
    refresh(true);
  }

  function drawRuns() {
    const list = by('runs'), filter = by('filter').value.toLowerCase();
    list.replaceChildren();
    for (const run of state.runs) {
      if (filter && !run.name.toLowerCase().includes(filter)) continue;
      const item = make('li'), label = make('label'), box = make('input'), dot = make('i');
      box.type = 'checkbox';
      box.checked = state.chosen.includes(run.name);
      box.addEventListener('change', () => choose(run.name, box.checked));
      if (box.checked) dot.style.background = colour(run.name);
      label.append(box, dot, make('span', run.name), make('small', run.state));
      item.append(label);
      list.append(item);
    }
  }

  async function listRuns() {
    const runs = await get('/api/runs');
    runs.sort((a, b) => (b.id || '').localeCompare(a.id || ''));
    const changed = JSON.stringify(runs) !== JSON.stringify(state.runs);
    state.runs = runs;
    state.chosen = state.chosen.filter((name) => runs.some((run) => run.name === name));
    if (state.first && runs.length) state.chosen = [runs[0].name];
    if (runs.length) state.first = false;
    if (changed) drawRuns();
  }

  // --- the data of the chosen runs
  async function fetchRun(run, machine) {
    const facts = await get('/api/run', run), have = state.data.get(run);
    if (have && have.version === facts.version && have.facts.state === facts.state && (have.system || !machine)) return;
    const series = await get('/api/series', run, '');
    if (machine) Object.assign(series, await get('/api/series', run, 'system/'));
    state.data.set(run, { version: facts.version, facts, series, system: machine });
    if (facts.share_read < 1 && !state.again) state.again = setTimeout(() => { state.again = 0; refresh(false); }, 20);
    drawSoon();
  }

  // One request for a run at a time: one that takes long is not sent again and again.
  async function load(run, machine) {
    const key = machine + ' ' + run;
    if (state.loading.has(key)) return;
    state.loading.add(key);
    try { await fetchRun(run, machine); } finally { state.loading.delete(key); }
  }

  // --- curves
  function smooth(values, weight) {
    let mean = null, mass = 0;
    return values.map((v) => {
      if (v === null) return null;
      mean = weight * (mean === null ? 0 : mean) + (1 - weight) * v;
      mass = weight * mass + (1 - weight);
      return mean / mass;
    });
  }

  const isByTime = (name) => by('axis').value === 'time' || name.startsWith('system/');

  // The points of a series, with those of the part that was fetched for a zoomed chart in their place.
  function pointsOf(name, run, byTime) {
    const points = (state.data.get(run) || { series: {} }).series[name] || [], part = state.parts.get(name);
    const fine = part && part.points.get(run), x = (p) => p[byTime ? 1 : 0];
    if (!fine || !fine.length) return points;
    const last = Math.min(part.to, x(fine[fine.length - 1])); // a growing run has more by now
    return [...points.filter((p) => x(p) < part.from), ...fine, ...points.filter((p) => x(p) > last)];
  }

  // A zoomed chart of a long run: once the view has settled, all points of what is seen are fetched.
  function lookCloser(name, holder) {
    clearTimeout(Number(holder.dataset.timer));
    holder.dataset.timer = setTimeout(() => { fetchPart(name, holder).catch(() => {}); }, 150);
  }

  async function fetchPart(name, holder) {
    const chart = state.charts.get(name), part = state.parts.get(name);
    if (!chart || !holder.isConnected) return;
    if (!chart.isZoomed('x')) {
      if (state.parts.delete(name)) drawChart(name, holder);
      return;
    }
    const [from, to] = chart.xAxisRange(), byTime = isByTime(name), fresh = { from, to, points: new Map() };
    if (part && part.from === from && part.to === to) return;
    state.parts.set(name, fresh); // without points yet: the thinned ones stay in view
    await Promise.all(state.chosen.map(async (run) => {
      if (!state.data.has(run) || !state.data.get(run).facts.thinned.includes(name)) return;
      const answer = await get('/api/part', run, name, { by: byTime ? 'time' : 'step', from, to });
      if (answer.complete) fresh.points.set(run, answer.points);
    }));
    if (state.parts.get(name) === fresh && fresh.points.size) drawChart(name, holder);
  }

  function forgetCharts() {
    state.charts.forEach((c) => c.destroy());
    state.charts.clear();
    state.parts.clear();
  }

  function rows(name) {
    const byTime = isByTime(name), weight = Number(by('smooth').value);
    const table = new Map();
    state.chosen.forEach((run, k) => {
      const points = pointsOf(name, run, byTime);
      const values = smooth(points.map((p) => p[2]), weight);
      points.forEach((p, i) => {
        const x = byTime ? p[1] : p[0];
        if (x === null) return;
        if (!table.has(x)) table.set(x, state.chosen.map(() => NaN));
        table.get(x)[k] = values[i];
      });
    });
    // NaN breaks a line, null is passed over: a run has no point where another one has.
    return Array.from(table).sort((a, b) => a[0] - b[0])
      .map(([x, ys]) => [x, ...ys.map((y) => (Number.isNaN(y) ? null : y))]);
  }

  function number(x) {
    if (x === null || x === undefined) return '';
    const size = Math.abs(x);
    if (size >= 1e12 || (size > 0 && size < 1e-3)) return x.toExponential(2);
    for (const [unit, letter] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']])
      if (size >= 10 * unit) return Number((x / unit).toPrecision(4)) + letter;
    return String(Number(x.toPrecision(4)));
  }

  // For whoever tests: how many points are in view, and how far they are apart.
  function describe(chart, holder) {
    const [from, to] = chart.xAxisRange(), xs = [];
    for (let i = 0; i < chart.numRows(); i++) {
      const x = chart.getValue(i, 0);
      if (x >= from && x <= to) xs.push(x);
    }
    holder.dataset.points = xs.length;
    holder.dataset.gap = xs.length > 1 ? (xs[xs.length - 1] - xs[0]) / (xs.length - 1) : 0;
  }

  function drawChart(name, holder) {
    const data = rows(name), values = holder.querySelector('.values'), lone = data.length === 1;
    const options = {
      drawPoints: data.length < 3,
      file: data, labels: ['x', ...state.chosen], colors: state.chosen.map(colour),
      logscale: by('log').checked && data.every((r) => r.slice(1).every((v) => v === null || v > 0)),
    };
    // The axis of a single point has no width, and so no numbers: give it some, until there are more points.
    if (lone) options.dateWindow = [data[0][0] - 1, data[0][0] + 1];
    else if (holder.dataset.lone === 'true') options.dateWindow = null;
    holder.dataset.lone = lone;
    const known = state.charts.get(name);
    if (known) { known.updateOptions(options); return; }
    state.charts.set(name, new Dygraph(holder.querySelector('.plot'), data, Object.assign({
      connectSeparatedPoints: true, strokeWidth: 1.6, legend: 'never', pointSize: 3,
      axisLineColor: dark.matches ? '#30363d' : '#d0d7de', gridLineColor: dark.matches ? '#21262d' : '#eaeef2',
      xlabel: isByTime(name) ? 'seconds' : 'step',
      axes: { y: { valueFormatter: number, axisLabelFormatter: number, axisLabelWidth: 56 },
        x: { axisLabelFormatter: (x) => (x >= 1e6 ? x / 1e6 + 'M' : x >= 1e4 ? x / 1e3 + 'k' : String(x)) } },
      highlightCallback: (e, x, points) => {
        values.textContent = 'at ' + x + ': ' + points.filter((p) => p.yval !== null && !Number.isNaN(p.yval))
          .map((p) => p.name + ' ' + number(p.yval)).join(', ');
      },
      unhighlightCallback: () => { values.textContent = ''; },
      drawCallback: (chart, initial) => {
        describe(chart, holder);
        if (!initial) lookCloser(name, holder);
      },
    }, options)));
  }

  // Losses first, then evaluations, then the rest as recorded.
  function place(name) {
    return name.includes('loss') ? (name.startsWith('val/') ? 1 : 0) : name.startsWith('val/') ? 2 : 3;
  }

  function drawCharts(machine) {
    const names = new Set();
    for (const run of state.chosen)
      for (const name of Object.keys((state.data.get(run) || { series: {} }).series))
        if (name.startsWith('system/') === machine) names.add(name);
    const content = by('content'), sorted = Array.from(names).sort((a, b) => place(a) - place(b));
    let grid = content.querySelector('.charts');
    const same = grid && grid.dataset.names === sorted.join('\n') + state.chosen.join('\n');
    if (!same) {
      forgetCharts();
      grid = make('div', undefined, 'charts');
      grid.dataset.names = sorted.join('\n') + state.chosen.join('\n');
      for (const name of sorted) {
        const holder = make('section', undefined, 'chart');
        holder.dataset.name = name;
        holder.append(make('h2', name), make('div', undefined, 'plot'), make('div', undefined, 'values'));
        grid.append(holder);
      }
      content.replaceChildren(grid);
      if (!names.size) content.append(make('p', state.chosen.length ? 'Nothing was recorded yet.' : 'Choose a run.'));
    }
    for (const holder of grid.children) drawChart(holder.dataset.name, holder);
  }

  // --- tables
  function table(head, lines, marked) {
    const box = make('div', undefined, 'scroll'), t = make('table'), first = make('tr');
    head.forEach((h) => first.append(make('th', h)));
    t.append(first);
    lines.forEach((line, i) => {
      const row = make('tr', undefined, marked && marked[i] ? 'differs' : undefined);
      line.forEach((cell, k) => row.append(make('td', cell, k ? 'r' : undefined)));
      t.append(row);
    });
    box.append(t);
    return box;
  }

  // The last value of each figure of the machine, in a table for each kind of part.
  function drawHosts() {
    const content = by('content');
    content.replaceChildren();
    for (const run of state.chosen) {
      const d = state.data.get(run), kinds = { host: new Map(), rank: new Map(), gpu: new Map() };
      if (!d) continue;
      for (const [name, points] of Object.entries(d.series)) {
        const m = /^system\/(?:([^/]+)\/)?(?:((rank|gpu)\.\d+)\.)?([^/.]+)$/.exec(name);
        if (!m || !points.length) continue;
        const parts = kinds[m[3] || 'host'], part = (m[1] || 'this host') + (m[2] ? ' ' + m[2].replace('.', ' ') : '');
        if (!parts.has(part)) parts.set(part, new Map());
        parts.get(part).set(m[4], points[points.length - 1][2]);
      }
      content.append(make('h2', run + ' (' + d.facts.state + ')'));
      for (const [kind, parts] of Object.entries(kinds)) {
        const head = Array.from(new Set(Array.from(parts.values()).flatMap((v) => Array.from(v.keys()))));
        if (parts.size) content.append(table([kind, ...head.map((h) => h.replace(/_/g, ' '))],
          Array.from(parts, ([part, values]) => [part, ...head.map((h) => number(values.get(h)))])));
      }
      if (!kinds.host.size && !kinds.rank.size) content.append(make('p', 'Nothing was measured.'));
    }
  }

  function drawConfig() {
    const keys = new Set();
    for (const run of state.chosen) Object.keys((state.data.get(run) || { facts: { config: {} } }).facts.config)
      .forEach((k) => keys.add(k));
    const all = Array.from(keys).map((k) => [k, ...state.chosen.map((r) => {
      const d = state.data.get(r);
      return d && d.facts.config[k] !== undefined ? d.facts.config[k] : '';
    })]);
    const differs = all.map((line) => new Set(line.slice(1)).size > 1);
    const order = all.map((_, i) => i).sort((a, b) => differs[b] - differs[a]);
    by('content').replaceChildren(
      make('p', state.chosen.length > 1 ? 'Keys that differ come first.' : 'Choose a second run to see what differs.'),
      table(['key', ...state.chosen], order.map((i) => all[i]), order.map((i) => differs[i])));
  }

  // Sample translations and the like, the newest first.
  function drawTexts() {
    const parts = [];
    for (const run of state.chosen) {
      const d = state.data.get(run), texts = d ? d.facts.events.filter((e) => typeof e.text === 'string') : [];
      parts.push(make('h2', run));
      if (d && !texts.length) parts.push(make('p', 'This run has recorded no texts.'));
      for (const e of texts.reverse()) parts.push(make('h3', e.name + ', step ' + e.step), make('pre', e.text, 'text'));
    }
    by('content').replaceChildren(...parts);
  }

  async function drawLog() {
    const parts = [];
    for (const run of state.chosen) {
      let text = 'no log yet';
      try { text = await get('/api/log', run); } catch (e) { /* it is not there yet */ }
      parts.push(make('h2', run), make('pre', text));
    }
    const old = by('content').querySelector('pre'), at = old && old.scrollTop + old.clientHeight < old.scrollHeight - 4
      ? old.scrollTop : null;
    by('content').replaceChildren(...parts);
    for (const pre of by('content').querySelectorAll('pre')) pre.scrollTop = at === null ? pre.scrollHeight : at;
  }

  function drawBook() {
    const run = state.chosen[0], src = run === undefined ? '' : '/book?run=' + encodeURIComponent(run);
    const old = by('content').querySelector('iframe');
    if (old && old.getAttribute('src') === src) return;
    const frame = make('iframe');
    frame.title = 'log book';
    if (src) frame.src = src;
    by('content').replaceChildren(src ? frame : make('p', 'Choose a run.'));
  }

  function draw() {
    by('controls').hidden = state.tab !== 'Curves' && state.tab !== 'Machine';
    if (state.tab === 'Curves') drawCharts(false);
    else if (state.tab === 'Machine') drawCharts(true);
    else if (state.tab === 'Hosts and ranks') drawHosts();
    else if (state.tab === 'Texts') drawTexts();
    else if (state.tab === 'Config') drawConfig();
    else if (state.tab === 'Book') drawBook();
  }

  // How far the server is with records that it still reads.
  function drawReading() {
    const shares = state.chosen.map((run) => state.data.get(run)).filter((d) => d && d.facts.share_read < 1)
      .map((d) => d.facts.share_read);
    by('reading').hidden = !shares.length;
    by('reading').textContent = 'reading the record: ' + Math.floor(100 * Math.min(...shares, 1)) + ' %';
  }

  // For whoever measures: when the first chart, and when all of the records, were on the screen.
  function mark() {
    if (!state.charts.size) return;
    const whole = state.chosen.every((run) => state.data.has(run) && state.data.get(run).facts.share_read >= 1);
    for (const name of whole ? ['first chart', 'complete'] : ['first chart'])
      if (!performance.getEntriesByName(name).length) requestAnimationFrame(() => performance.mark(name));
  }

  function drawNow() {
    clearTimeout(state.soon);
    state.soon = 0;
    draw();
    drawReading();
    mark();
    document.body.dataset.ready = String((Number(document.body.dataset.ready) || 0) + 1);
  }

  // Runs whose data comes at about the same time are drawn together.
  function drawSoon() {
    if (!state.soon) state.soon = setTimeout(drawNow, 10);
  }

  async function refresh(always) {
    try {
      await listRuns();
      const machine = state.tab === 'Machine' || state.tab === 'Hosts and ranks';
      if (always && state.chosen.every((run) => state.data.has(run))) drawSoon();
      await Promise.all(state.chosen.map((run) => load(run, machine)));
      if (state.tab === 'Log') await drawLog();
      by('trouble').hidden = true;
    } catch (e) {
      by('trouble').hidden = false;
    }
  }

  function drawTabs() {
    by('tabs').replaceChildren(...tabs.map((name) => {
      const b = make('button', name, name === state.tab ? 'on' : undefined);
      b.type = 'button';
      b.addEventListener('click', () => {
        state.tab = name;
        writeAddress();
        forgetCharts();
        by('content').replaceChildren();
        drawTabs();
        refresh(true);
      });
      return b;
    }));
  }

  function redraw() {
    forgetCharts();
    by('content').replaceChildren();
    drawRuns();
    draw();
  }

  if (location.search) history.replaceState(null, '', '/' + location.hash); // the token is a cookie by now
  readAddress();
  for (const id of ['smooth', 'log']) by(id).addEventListener('input', draw);
  by('axis').addEventListener('input', redraw);
  by('filter').addEventListener('input', drawRuns);
  dark.addEventListener('change', redraw);
  drawTabs();
  refresh(true);
  setInterval(() => refresh(false), 2000);
})();
