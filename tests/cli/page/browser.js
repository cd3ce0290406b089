// SPDX-License-Identifier: Apache-2.0
// Pages in headless Chromium: what they complain about, and which of their code has run.
'use strict';

const complaints = [];  // messages on the console, errors, dialogs, and requests other than that of the file

// Two frames, after which the camera stands still.
const settle = page => page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));

async function open(browser, file, looks = {}) {
  const features = {'prefers-color-scheme': 'light', 'prefers-reduced-motion': 'reduce', ...looks};
  const page = await browser.newPage();
  page.setDefaultTimeout(120000);  // machines are busy
  await page.setViewport({width: 1200, height: 800});
  await page.emulateMediaFeatures(Object.entries(features).map(([name, value]) => ({name, value})));
  page.on('console', message => complaints.push(`${file}: console: ${message.text()}`));
  page.on('pageerror', error => complaints.push(`${file}: ${error.stack}`));
  page.on('dialog', dialog => { complaints.push(`${file}: dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on('request', request => { if (request.url() !== 'file://' + file) complaints.push(`${file}: request: ${request.url()}`); });
  await page.coverage.startJSCoverage({includeRawScriptCoverage: true});
  await page.goto('file://' + file);
  await settle(page);
  return page;
}

let script = '', ran = [];  // the script of all pages; by character, true if it has run in one of them
const starts = new Set();   // of its functions

async function close(page) {
  const [entry] = await page.coverage.stopJSCoverage();
  const counts = [];
  for (const {ranges} of entry.rawScriptCoverage.functions) {  // an outer range comes before those inside of it
    starts.add(ranges[0].startOffset);
    for (const {startOffset, endOffset, count} of ranges)
      for (let i = startOffset; i < endOffset; ++i) counts[i] = count;
  }
  script = entry.text;
  ran = counts.map((count, i) => count > 0 || Boolean(ran[i]));
  await page.close();
}

// The functions and the parts of functions that no page has run, in the order of the script.
function idle() {
  const functions = [], parts = [];
  for (let i = 0, end; i < ran.length; i = end) {
    for (end = i + 1; end < ran.length && ran[end] === ran[i]; ++end);
    const text = script.slice(i, end).replace(/\s+/g, ' ').trim();
    if (!ran[i] && text) parts.push(text.slice(0, 120));
  }
  for (const start of starts) if (!ran[start]) functions.push(script.slice(start, start + 120).split('\n')[0]);
  return {functions, parts, all: starts.size};
}

module.exports = {complaints, settle, open, close, idle};
