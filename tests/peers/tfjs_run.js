// SPDX-License-Identifier: Apache-2.0
// node tfjs_run.js JOB.json OUT.json: builds a sequential model of the job's layers, gives them their weights, and
// writes what the model makes of each input. See tfjs.h.
const fs = require('fs');
const job = JSON.parse(fs.readFileSync(process.argv[2]));
const tf = require(job.package);

const tensor = t => tf.tensor(t.values, t.shape, t.dtype);
const model = tf.sequential();
for (const {name, config} of job.layers) model.add(tf.layers[name](config));
job.layers.forEach(({weights}, i) => model.layers[i].setWeights(weights.map(tensor)));

const outputs = job.inputs.map(input => {
  const result = model.predict(tensor(input));
  return {shape: result.shape, values: Array.from(result.dataSync())};
});
fs.writeFileSync(process.argv[3], JSON.stringify(outputs));
