// The metrics of a deployment: how often each operation of its agent server was called, and how
// long its answers took.

import {html} from './vendor/lit.js';
import {get} from './api.js';
import {pause, shown} from './turns.js';
import {Live, copyAsCurl, seconds} from './view.js';

// period is how often the figures are read, in milliseconds. No event tells of a change.
const period = 5000;

const figures = {
  answers: 'slipway_http_requests_total', times: 'slipway_http_request_duration_seconds', open: 'slipway_http_requests_in_flight',
};

// within is a time, in milliseconds, that a share of the answers did not exceed: a bound of the
// distribution. An answer that took longer than the largest bound has no such time.
function within({count, buckets}, share) {
  const bounds = Object.keys(buckets).map(Number).sort((a, b) => a - b);
  return 1000 * bounds.find(bound => buckets[bound] >= share * count);
}

// rowsOf has a row for each operation, the most called one first.
function rowsOf(found) {
  const answers = found[figures.answers] ?? [];
  const total = (route, kept) => answers.filter(a => a.labels.route === route && kept(a.labels.code)).reduce((sum, a) => sum + a.value, 0);
  return (found[figures.times] ?? []).map(times => {
    const {route} = times.labels;
    return {
      times, route: route.replace('/d/{deployment_id}', ''), count: total(route, () => true),
      refused: total(route, code => code.startsWith('4')), failed: total(route, code => code.startsWith('5')),
    };
  }).sort((a, b) => b.count - a.count);
}

class Metrics extends Live {
  static properties = {deployment: {}, rows: {state: true}, inFlight: {state: true}, rate: {state: true}};

  get path() { return `/d/${this.deployment}/metrics?format=json`; }

  async open() {
    while (!this.ending.signal.aborted) {
      await shown(this.ending.signal);
      await this.refresh();
      await pause(period, this.ending.signal);
    }
  }

  async read() {
    const found = await get(this.path, this.ending.signal);
    this.rows = rowsOf(found);
    this.inFlight = found[figures.open]?.[0]?.value ?? 0;
    const now = {at: Date.now(), count: this.rows.reduce((sum, row) => sum + row.count, 0)};
    // A server that has started again counts from 0.
    if (this.last && now.count >= this.last.count) this.rate = 1000 * (now.count - this.last.count) / (now.at - this.last.at);
    this.last = now;
  }

  render() {
    const time = share => ({times}) => {
      const bound = within(times, share);
      return Number.isNaN(bound) ? 'more than 300 s' : seconds(bound);
    };
    return html`
      <div class="head"><h1>Metrics</h1> <a href="#/deployments/${this.deployment}">deployment</a>${copyAsCurl(this.path)}</div>
      ${this.problem()}
      ${this.rows ? html`<dl class="facts">
        <dt>In flight</dt><dd>${this.inFlight} requests, open streams included</dd>
        <dt>Now</dt><dd>${this.rate === undefined ? '…' : `${this.rate.toFixed(1)} requests each second`}</dd>
        <dt>Since</dt><dd>the start of this process of the server</dd></dl>` : ''}
      ${this.listed('Operations', [
        ['Operation', row => html`<code>${row.route}</code>`],
        ['Answers', row => row.count], ['Refused', row => row.refused], ['Failed', row => row.failed],
        ['Mean', ({times}) => seconds(1000 * times.sum / times.count)], ['Half within', time(0.5)], ['95 % within', time(0.95)], ['99 % within', time(0.99)],
      ], this.rows, 'No request was answered yet.')}`;
  }
}
customElements.define('slipway-metrics', Metrics);
