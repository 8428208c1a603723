// The dashboard: one stream of snapshots in, one page out. No library, no build step.

import { Chart, short } from "/dashboard/chart.js";

const byId = (id) => document.getElementById(id);
const MAX_LINES = 300;
const SCALES = [0.5, 1, 2, 5, 10, 20, 50, 100, 200];
const WINDOW = 4; // snapshots over which rates are taken

const chart = new Chart(byId("throughput"));
const cells = new Map();
const recent = [];
let measure = "booked", chosen = null, last = null, lines = [], faultsShown = "";

// ---- asking the admin

async function ask(method, path, body) {
  const answer = await fetch(path, { method, body: body === undefined ? undefined : JSON.stringify(body) });
  const found = await answer.json();
  byId("said").textContent = answer.ok ? "" : found.error;
  return answer.ok;
}

// ---- tiles

function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 100) return `${value.toFixed(0)} s`;
  return value >= 1 ? `${value.toFixed(1)} s` : `${Math.round(value * 1000)} ms`;
}

function brief(value) {
  if (value === null || value === undefined) return "·";
  return value < 0.01 ? `${(value * 1000).toFixed(1)}ms` : `${value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)}s`;
}

function clockText(wall) {
  return new Date(wall * 1000).toISOString().slice(11, 19);
}

function tiles(now) {
  recent.push({ at: now.now_s, rows: now.rows, calls: now.calls });
  if (recent.length > WINDOW) recent.shift();
  const passed = now.now_s - recent[0].at;
  const rate = (key) => (passed > 0 ? (now[key] - recent[0][key]) / passed : 0);
  const rows = rate("rows"), calls = rate("calls");
  if (recent.length > 1) chart.add(now.now_s, rows, calls);
  byId("booked").textContent = now.booked.toLocaleString("en");
  byId("rate").textContent = `${short(rows)} rows/s`;
  byId("calls").textContent = now.calls.toLocaleString("en");
  byId("callrate").textContent = `${short(calls)} calls/s`;
  byId("inflight").textContent = now.in_flight;
  byId("slots").textContent = `${now.in_service} of ${now.slots} slots, ${now.waiting} waiting`;
  const times = lines.slice(0, 200).map((line) => line[5]).sort((a, b) => a - b);
  const at = (share) => times[Math.min(Math.floor(times.length * share), times.length - 1)];
  byId("times").textContent = times.length ? `${brief(at(0.5))} / ${brief(at(0.95))}` : "–";
  byId("refused").textContent = now.refused.toLocaleString("en");
  byId("refused").className = now.refused ? "warn" : "";
  byId("failed").textContent = (now.dropped + now.errors).toLocaleString("en");
  byId("failed").className = now.dropped + now.errors ? "bad" : "";
  byId("failedwhat").textContent = `no answer ${now.dropped} · errors ${now.errors}`;
}

function heading(now) {
  byId("about").textContent = now.description || "a practice accounting cloud";
  byId("scenario").textContent = now.scenario;
  byId("clock").textContent = `${clockText(now.wall_s)} · ${now.now_s.toFixed(0)} s`;
  const select = byId("scale");
  if (document.activeElement !== select && Number(select.value) !== now.time_scale) {
    const known = SCALES.includes(now.time_scale) ? SCALES : [...SCALES, now.time_scale].sort((a, b) => a - b);
    select.replaceChildren(...known.map((scale) => new Option(scale, scale, false, scale === now.time_scale)));
  }
}

// ---- the heat-map

function shown(company) {
  const value = company[measure];
  if (value === undefined || value === null) return "·";
  return measure === "p50" || measure === "p95" ? brief(value) : short(value);
}

function heat(companies) {
  const box = byId("heat");
  if (cells.size !== companies.length || !companies.every((company) => cells.has(company.code))) {
    cells.clear();
    for (const company of companies) {
      const cell = document.createElement("button");
      cell.type = "button";
      cell.append(document.createElement("b"), document.createElement("span"));
      cell.firstChild.textContent = company.code;
      cell.onpointerenter = cell.onfocus = () => { chosen = company.code; detail(); };
      cell.onclick = () => { byId("only").value = company.code; table(); };
      cells.set(company.code, cell);
    }
    box.replaceChildren(...cells.values());
  }
  const values = companies.map((company) => company[measure] ?? 0);
  const top = Math.max(...values, measure === "in_flight" || measure === "refused" ? 1 : 0), low = Math.min(...values);
  const span = top - Math.min(low, measure === "p50" || measure === "p95" ? low : 0) || 1;
  const foot = top - span;
  for (const company of companies) {
    const cell = cells.get(company.code), share = Math.sqrt(Math.max(0, ((company[measure] ?? foot) - foot) / span));
    cell.className = `cell${share > 0.6 ? " hot" : ""}${company.in_flight ? " busy" : ""}${company.open ? "" : " shut"}${chosen === company.code ? " chosen" : ""}`;
    cell.style.background = `color-mix(in oklab, rgb(var(--heat-1)) ${(share * 100).toFixed(0)}%, rgb(var(--heat-0)))`;
    cell.lastChild.textContent = shown(company);
  }
  const label = measure.startsWith("p") ? seconds : short;
  byId("low").textContent = label(foot);
  byId("high").textContent = label(top);
  detail();
}

function detail() {
  const company = last?.companies.find((one) => one.code === chosen);
  if (!company) return;
  const name = document.createElement("b");
  name.textContent = `${company.code} ${company.name}`;
  const left = company.left_minute === undefined ? "" : ` · left ${company.left_minute} this minute, ${company.left_day} today`;
  byId("detail").replaceChildren(name, ` · ${company.booked.toLocaleString("en")} booked · ${company.calls ?? 0} calls · in flight ${company.in_flight ?? 0} · p50 ${seconds(company.p50)} · p95 ${seconds(company.p95)} · refused ${company.refused ?? 0}${left}`);
}

// ---- limits and faults

function limits(now) {
  const box = byId("limits");
  if (!now.limits) {
    box.innerHTML = '<p class="none">This scenario limits nothing.</p>';
    return;
  }
  const least = (key) => now.companies.filter((one) => one.open).reduce((best, one) => (one[key] < best[key] ? one : best));
  const meters = [["minute", "left_minute"], ["day", "left_day"]].map(([word, key]) => {
    const company = least(key), all = now.limits[word], left = company[key], share = (100 * left) / all;
    const row = document.createElement("div");
    row.className = "limit";
    row.innerHTML = "<div><span></span><b></b></div><div class='meter'><i></i></div>";
    row.querySelector("span").textContent = `calls left this ${word}, least at ${company.code}`;
    row.querySelector("b").textContent = `${left.toLocaleString("en")} of ${all.toLocaleString("en")}`;
    const bar = row.querySelector("i");
    bar.style.width = `${share}%`;
    bar.className = left === 0 ? "none" : share < 25 ? "low" : "";
    return row;
  });
  const spent = document.createElement("p");
  spent.className = "none";
  spent.textContent = `${now.companies.filter((one) => one.left_minute === 0).length} companies have used up their minute.`;
  box.replaceChildren(...meters, spent);
}

function faults(list) {
  const key = JSON.stringify(list);
  if (key === faultsShown) return;
  faultsShown = key;
  const items = list.map((fault) => {
    const item = document.createElement("li");
    const knob = document.createElement("button");
    knob.type = "button";
    knob.className = "switch";
    knob.setAttribute("role", "switch");
    knob.setAttribute("aria-checked", fault.on);
    knob.setAttribute("aria-label", `fault ${fault.kind}`);
    knob.onclick = () => ask("PUT", `/_mock/faults/${fault.place}`, { on: !fault.on });
    const text = document.createElement("div"), name = document.createElement("b"), how = document.createElement("small");
    name.textContent = fault.kind;
    how.textContent = Object.entries(fault.spec).map(([word, value]) => `${word} ${value}`).join(", ") || "each call";
    text.append(name, how);
    const hits = document.createElement("em");
    hits.textContent = `${fault.hits} hit`;
    item.append(knob, text, hits);
    return item;
  });
  if (!items.length) {
    const none = document.createElement("li");
    none.className = "none";
    none.textContent = "No faults: everything goes well.";
    items.push(none);
  }
  byId("faults").replaceChildren(...items);
}

// ---- the log

function pill(status) {
  const node = document.createElement("span");
  node.className = `pill ${status === 429 ? "warn" : status === 0 || status >= 400 ? "bad" : ""}`;
  node.textContent = status || "lost";
  return node;
}

function table() {
  if (byId("pause").checked) return;
  const only = byId("only").value.trim(), bad = byId("bad").checked;
  const kept = lines.filter((line) => (!only || String(line[1]).includes(only)) && (!bad || line[4] === 0 || line[4] >= 400)).slice(0, 100);
  const longest = Math.max(0.001, ...kept.map((line) => line[5]));
  byId("log").replaceChildren(...kept.map(([at, company, form, rows, status, took]) => {
    const row = document.createElement("tr");
    const bar = document.createElement("span");
    bar.className = "took";
    bar.style.width = `${Math.max(1, (100 * took) / longest)}%`;
    const texts = [at.toFixed(2), company || "–", form, rows || "", pill(status), (took * 1000).toFixed(took < 0.01 ? 2 : 0), bar];
    row.append(...texts.map((text, place) => {
      const cell = document.createElement("td");
      if (place === 3 || place === 5) cell.className = "n";
      cell.append(text);
      return cell;
    }));
    return row;
  }));
}

// ---- the stream

function take(now) {
  if (last && now.calls < last.calls) {
    lines = [];
    recent.length = 0;
    chart.clear();
  }
  last = now;
  lines = [...now.log.reverse(), ...lines].slice(0, MAX_LINES);
  heading(now);
  tiles(now);
  heat(now.companies);
  limits(now);
  faults(now.faults);
  if (now.log.length || !lines.length) table();
}

function listen() {
  const stream = new EventSource("/_mock/events");
  const dot = byId("state");
  stream.onopen = () => { dot.className = "dot live"; dot.title = "live"; };
  stream.onerror = () => { dot.className = "dot gone"; dot.title = "the server does not answer"; };
  stream.onmessage = (event) => take(JSON.parse(event.data));
}

byId("measures").onclick = (event) => {
  const tab = event.target.closest("button");
  if (!tab) return;
  measure = tab.dataset.measure;
  for (const other of byId("measures").children) other.setAttribute("aria-selected", other === tab);
  if (last) heat(last.companies);
};
byId("scale").onchange = async (event) => {
  await ask("PUT", "/_mock/clock", { time_scale: Number(event.target.value) });
  event.target.blur();
};
byId("reset").onclick = () => ask("POST", "/_mock/reset");
byId("add").onsubmit = (event) => {
  event.preventDefault();
  ask("POST", "/_mock/faults", { kind: byId("kind").value, probability: Number(byId("share").value) / 100 });
};
byId("only").oninput = byId("bad").onchange = byId("pause").onchange = table;

const asked = new URLSearchParams(location.search).get("theme");
const dark = asked ? asked === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
document.documentElement.dataset.theme = dark ? "dark" : "light";
byId("theme").onclick = () => {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
};
listen();
