// SPDX-License-Identifier: Apache-2.0
// The other tabs: memory, profile, conversion, differences.

const TABS = [['graph', 'Graph'], ['memory', 'Memory'], ['profile', 'Profile'], ['conversion', 'Conversion'], ['errors', 'Differences']];
const shown = TABS.filter(([id]) => id === 'graph' || id === 'memory' || (id === 'profile' && data.profile) ||
  (id === 'conversion' && data.report) || (id === 'errors' && data.layers));

function tip(text, x, y) {
  const box = document.getElementById('tip');
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  box.style.left = Math.min(x + 14, innerWidth - box.offsetWidth - 8) + 'px';
  box.style.top = Math.min(y + 14, innerHeight - box.offsetHeight - 8) + 'px';
}

const MARGIN = {left: 66, right: 8, top: 8, bottom: 34};

// Bytes in use at each step.
function occupancy(plan) {
  const changes = new Array(plan.steps.length + 1).fill(0);
  for (const [, , size, first, last] of plan.pieces) {
    changes[first] += size;
    changes[last + 1] -= size;
  }
  let sum = 0;
  return changes.slice(0, plan.steps.length).map(change => sum += change);
}

class MemoryPicture {
  constructor(plan) {
    this.plan = plan;
    this.canvas = el('canvas', {style: 'height:380px', class: 'arena'});
    this.canvas.addEventListener('mousemove', event => this.hover(event));
    this.canvas.addEventListener('mouseleave', () => { this.at = null; tip(''); this.draw(); });
    this.canvas.addEventListener('click', event => this.click(event));
    this.at = null;
  }

  scales() {
    const box = this.canvas.getBoundingClientRect();
    const width = box.width - MARGIN.left - MARGIN.right, height = box.height - MARGIN.top - MARGIN.bottom;
    const steps = Math.max(1, this.plan.steps.length), total = Math.max(1, this.plan.bytes);
    return {box, x: step => MARGIN.left + width * step / steps, y: offset => MARGIN.top + height * (1 - offset / total), step: width / steps};
  }

  draw() {
    const {box, x, y, step} = this.scales();
    if (!box.width) return;
    const ratio = window.devicePixelRatio || 1, g = this.canvas.getContext('2d');
    this.canvas.width = box.width * ratio;
    this.canvas.height = box.height * ratio;
    g.scale(ratio, ratio);
    this.axes(g, x, y, step);
    this.plan.pieces.forEach((piece, i) => {
      const [, offset, size, first, last, scratch] = piece;
      const left = x(first), top = y(offset + size), w = Math.max(1, x(last + 1) - left), h = Math.max(1, y(offset) - top);
      const gap = w > 4 && h > 4 ? .75 : 0;
      g.globalAlpha = this.at === null || this.at === i ? .88 : .5;
      g.fillStyle = scratch ? colors.edge : colors.kinds[[0, 3, 4, 7, 1, 6][i % 6]];
      g.beginPath();
      g.roundRect(left + gap, top + gap, w - 2 * gap, h - 2 * gap, Math.min(3, w / 3, h / 3));
      g.fill();
      g.globalAlpha = 1;
      this.label(g, piece, left, top, w, h);
    });
  }

  label(g, [name, , size, , , scratch], left, top, w, h) {
    if (w < 60 || h < 15) return;
    g.save();
    g.beginPath();
    g.rect(left + 6, top, w - 12, h);
    g.clip();
    g.fillStyle = scratch ? colors.text : colors.panel;
    g.font = '600 11px ' + colors.sans;
    g.textAlign = 'left';
    const middle = top + h / 2 + (h > 32 ? -2 : 4);
    g.fillText(scratch ? 'scratch' : name.split(';')[0].split('/').pop() || 'value', left + 8, middle);
    if (h > 32) {
      g.font = '10.5px ' + colors.mono;
      g.fillText(bytes(size), left + 8, middle + 14);
    }
    g.restore();
  }

  axes(g, x, y, step) {
    const {steps, bytes: total} = this.plan;
    g.font = '11px ' + colors.sans;
    g.textAlign = 'right';
    for (let i = 0; i <= 4; ++i) {
      const at = Math.round(y(total * i / 4)) + .5;
      g.strokeStyle = colors.line;
      g.beginPath();
      g.moveTo(x(0), at);
      g.lineTo(x(steps.length), at);
      g.stroke();
      g.fillStyle = colors.muted;
      g.fillText(bytes(Math.round(total * i / 4)), x(0) - 8, at + 4);
    }
    const every = Math.max(1, Math.ceil(86 / step));
    g.textAlign = 'center';
    for (let i = 0; i < steps.length; i += every) {
      g.fillStyle = colors.muted;
      g.fillText(steps[i].op.slice(0, Math.floor(step * every / 8)), x(i + .5), y(0) + 16);
      if (steps[i].node >= 0) g.fillText(String(steps[i].node), x(i + .5), y(0) + 29);
    }
  }

  pieceAt(event) {
    const {box, x, y} = this.scales(), px = event.clientX - box.left, py = event.clientY - box.top;
    return this.plan.pieces.findIndex(([, offset, size, first, last]) => px >= x(first) && px <= x(last + 1) && py >= y(offset + size) && py <= y(offset));
  }

  hover(event) {
    const at = this.pieceAt(event), piece = this.plan.pieces[at];
    if (this.at !== (at < 0 ? null : at)) {
      this.at = at < 0 ? null : at;
      this.draw();
    }
    if (!piece) return tip('');
    const [name, offset, size, first, last, scratch] = piece, {steps} = this.plan;
    const place = i => steps[i] ? steps[i].op + (steps[i].node >= 0 ? ' ' + steps[i].node : '') : '';
    tip(`${scratch ? 'scratch memory' : name || 'value'}\n${bytes(size)} at offset ${offset}\n${first === last ? place(first) : `from ${place(first)} to ${place(last)}`}`, event.clientX, event.clientY);
  }

  click(event) {
    const piece = this.plan.pieces[this.pieceAt(event)];
    const step = piece && this.plan.steps[piece[3]], f = functions.findIndex(f => f.name === this.plan.function);
    if (!step || step.node < 0 || f < 0) return;
    tip('');
    openTab('graph');
    select(f, step.node);
  }
}

const pictures = [];

function fillMemory(section) {
  section.append(el('h2', {}, 'Memory plan'));
  if (!data.memory.length) {
    section.append(el('p', {}, data.memory_reason ? 'There is no plan: ' + data.memory_reason : 'No value is in an arena.'));
    return;
  }
  section.append(el('p', {}, 'Each box is a value: to the right the steps in execution order, upwards the offset in the arena. Boxes above each other are in use at the same time; boxes side by side share memory. Gray: scratch memory of a kernel or delegate. Inputs, outputs, constants, and what delegates and kernels allocate themselves are not in the arena.'));
  for (const plan of data.memory.slice(0, 24)) {
    const used = occupancy(plan), most = Math.max(0, ...used), sum = plan.pieces.reduce((n, piece) => n + piece[2], 0);
    const picture = new MemoryPicture(plan);
    pictures.push(picture);
    section.append(el('h2', {}, plan.function, el('small', {}, `${bytes(plan.bytes)} for ${bytes(sum)} of values; most in use at once: ${bytes(most)} in ${plan.steps[used.indexOf(most)].op}`)), el('div', {class: 'card'}, picture.canvas));
  }
  if (data.memory.length > 24) section.append(el('p', {}, `${data.memory.length - 24} more functions have an arena.`));
}

function headed(head, rows, kind = 'rows') {
  return el('table', {class: kind}, el('thead', {}, el('tr', {}, head.map(([name, c]) => el('th', {class: c}, name)))), el('tbody', {}, rows));
}

function goRow(f, i, cells) {
  const row = el('tr', {}, cells);
  if (f === undefined || i === undefined) return row;
  row.dataset.go = '1';
  row.addEventListener('click', () => { openTab('graph'); select(f, i); });
  return row;
}

function profileRow(row, all) {
  const at = (row.at || [])[0] || [], share = 100 * row.avg_ms / all, number = text => el('td', {class: 'n'}, text);
  return goRow(at[0], at[1], [el('td', {class: row.inside ? 'op span' : 'op'}, row.type), el('td', {class: 'path'}, (row.name || '').split(';')[0]), el('td', {}, row.runner), number(milliseconds(row.avg_ms)), number(share.toFixed(1) + ' %'),
    el('td', {style: 'width:120px'}, row.inside ? '' : el('span', {class: 'bar', style: `width:${Math.min(100, share)}%;background:rgb(var(--heat))`})),
    number(row.flops && row.avg_ms ? (row.flops * row.calls / row.avg_ms / 1e6).toFixed(1) : ''), number(row.of_peak ? (100 * row.of_peak).toFixed(0) + ' %' : '')]);
}

function fillProfile(section) {
  const profile = data.profile, all = profile.nodes_ms || 1;
  section.append(el('h2', {}, 'Profile'), el('p', {}, `Mean of ${profile.runs} runs: ${milliseconds(profile.run_ms)} per run, ${milliseconds(all)} of it in nodes.` + (profile.peak && profile.peak.flops ? ` Peak of the machine: ${(profile.peak.flops / 1e9).toFixed(0)} GFLOP/s.` : '')),
    el('div', {class: 'card'}, headed([['op'], ['name'], ['runs on'], ['time', 'n'], ['share', 'n'], [''], ['GFLOP/s', 'n'], ['of peak', 'n']], profile.rows.slice(0, 3000).map(row => profileRow(row, all)))));
}

function beforeAfter(report) {
  const ops = [...new Set([...Object.keys(report.ops_before), ...Object.keys(report.ops_after)])];
  const most = Math.max(1, ...ops.map(op => Math.max(report.ops_before[op] || 0, report.ops_after[op] || 0)));
  const bar = (count, color) => el('td', {style: 'width:28%'}, count ? el('span', {class: 'bar', style: `width:${100 * count / most}%;background:var(--${color})`}) : '');
  return headed([['op'], ['before', 'n'], [''], ['after', 'n'], ['']], ops.map(op => {
    const before = report.ops_before[op] || 0, after = report.ops_after[op] || 0;
    return el('tr', {}, el('td', {}, op), el('td', {class: 'n'}, String(before)), bar(before, 'k3'), el('td', {class: 'n'}, String(after)), bar(after, 'k1'));
  }));
}

function siteRows(sites) {
  return sites.flatMap(site => (site.rules.length ? site.rules : [null]).map(rule => el('tr', {},
    el('td', {}, site.composite, el('div', {class: 'path'}, site.location || site.function)), el('td', {}, rule ? rule.rule : '', rule ? el('div', {class: 'path'}, rule.plugin + ' ' + rule.plugin_version) : null),
    el('td', {class: rule && rule.outcome === 'fused' ? 'good' : ''}, rule ? rule.outcome : site.reason, rule && rule.reasons.length ? el('div', {class: 'muted'}, rule.reasons.join('; ')) : null),
    el('td', {class: 'mono'}, site.fused ? site.emitted.join(', ') : ''), el('td', {}, site.fused ? site.verification || 'not verified' : ''))));
}

function fillConversion(section) {
  const report = data.report;
  section.append(el('h2', {}, 'Conversion'), el('p', {}, report.source || ''));
  if (report.error) section.append(el('p', {class: 'note bad'}, report.error));
  for (const note of report.notes) section.append(el('p', {class: 'note'}, note));
  for (const refused of report.refused) section.append(el('p', {class: 'note bad'}, `signature ${refused.signature}: ${refused.reason}`));
  if (report.sites.length) section.append(el('h2', {}, 'Composites', el('small', {}, `${report.sites.filter(site => site.fused).length} of ${report.sites.length} fused`)),
    el('div', {class: 'card'}, headed([['composite'], ['rule'], ['result'], ['replaced by'], ['proof']], siteRows(report.sites))));
  section.append(el('h2', {}, 'Ops'), el('div', {class: 'card'}, beforeAfter(report)));
  if (report.variables.length) section.append(el('h2', {}, 'Variables'), el('div', {class: 'card'}, headed([['variable'], ['type'], ['is'], ['reason']], report.variables.map(v => el('tr', {}, [v.name, v.type, v.mutability, v.reason].map(cell => el('td', {}, cell)))))));
  if (report.layers.length) section.append(el('h2', {}, 'Quantized layers'), el('div', {class: 'card'}, headed([['layer'], ['op'], ['rms error', 'n'], ['relative', 'n']], report.layers.map(l => el('tr', {}, el('td', {class: 'path'}, l.location), el('td', {}, l.op), el('td', {class: 'n'}, short(l.rms_error)), el('td', {class: 'n'}, short(l.relative)))))));
}

// The error of each layer in decades, in the order of the nodes.
function errorPicture(rows) {
  const low = 1e-9, width = 900, step = width / Math.max(1, rows.length);
  const height = layer => layer.compared ? 4 + 96 * Math.min(1, Math.max(0, Math.log10(Math.max(errorOf(layer), low) / low) / 9)) : 0;
  const bars = rows.map((layer, i) => svg('rect', {x: i * step + step * .1, y: 100 - height(layer), width: Math.min(24, step * .8), height: height(layer), rx: Math.min(2, step / 4),
    fill: `var(--${layer.equal ? 'k7' : 'bad'})`}, svg('title', {}, `node ${layer.node} ${layer.op}: ${layer.compared ? brief(errorOf(layer)) : 'not compared'}`)));
  return svg('svg', {viewBox: `0 0 ${width} 100`, preserveAspectRatio: 'none', style: 'width:100%;height:130px;display:block'}, ...bars);
}

function layerRow(layer) {
  const at = (layer.at || [])[0] || [], number = text => el('td', {class: 'n'}, text);
  return goRow(at[0], at[1], [number(String(layer.node)), el('td', {class: 'op'}, layer.op), el('td', {class: 'path'}, layer.name.split(';')[0]), number(layer.compared ? brief(errorOf(layer)) : ''), number(layer.compared ? brief(layer.max_absolute ?? Infinity) : ''),
    el('td', {class: !layer.compared ? 'muted' : layer.equal ? 'good' : 'bad'}, !layer.compared ? 'not compared' : layer.equal ? 'equal' : 'differs')]);
}

function fillErrors(section) {
  const {rows, atol, rtol} = data.layers, first = rows.find(layer => layer.compared && !layer.equal);
  section.append(el('h2', {}, 'Differences along the graph'), el('p', {}, `Compared with ${data.layers.with}: atol ${short(atol)}, rtol ${short(rtol)}. Each bar is the result of a node; its height is the rms of the difference relative to that of the values, from 1e-9 to 1.`),
    first ? el('p', {class: 'note bad'}, `The first difference is in node ${first.node} ${first.op}: ${first.where}`) : el('p', {class: 'note'}, 'No node differs.'),
    el('div', {class: 'card'}, errorPicture(rows)),
    el('div', {class: 'card'}, headed([['node', 'n'], ['op'], ['value'], ['error', 'n'], ['largest difference', 'n'], ['result']], rows.slice(0, 3000).map(layerRow))));
}

function openTab(id) {
  for (const [tab] of TABS) document.getElementById(tab).hidden = tab !== id;
  for (const button of document.querySelectorAll('#tabs button')) button.setAttribute('aria-selected', button.dataset.tab === id);
  if (id === 'memory') pictures.forEach(picture => picture.draw());
  if (id === 'graph') redraw();
}

function fillTabs() {
  document.getElementById('tabs').append(...shown.map(([id, name]) => el('button', {role: 'tab', 'data-tab': id, 'aria-selected': id === 'graph', onclick: () => openTab(id)}, name)));
  const fill = {memory: fillMemory, profile: fillProfile, conversion: fillConversion, errors: fillErrors};
  for (const [id] of shown) if (fill[id]) fill[id](document.getElementById(id));
}
