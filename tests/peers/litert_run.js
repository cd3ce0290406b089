// SPDX-License-Identifier: Apache-2.0
// node litert_run.js PEERS < JOBS: runs .tflite files in LiteRT, which fetch.sh puts into PEERS. A job is a line of JSON:
//   {"model": FILE, "inputs": {NAME: FILE.npy, ...}, "output": FOLDER}
// A signature input takes the file with its name; if a name is missing, inputs are taken in order. Without "inputs", all
// are zeros. The outputs of the first signature are written as FOLDER/out<i>.npy. Each job is answered by a line of JSON
// on stdout:
//   {"status": "ok", "names": [NAME, ...]} or {"status": STATUS, "why": TEXT}
// STATUS is the step that failed: "load", "compile", "inputs" or "run"; "crash" if the module trapped, in any step.
// Each job has an instance of the module to itself. The process ends with 0 unless the module itself does not start.
'use strict';
const fs = require('fs');
const path = require('path');
const readline = require('readline');

const peers = path.resolve(process.argv[2]);
const createInstance = require(path.join(peers, 'litert.cjs'));
const binary = new WebAssembly.Module(fs.readFileSync(path.join(peers, 'litert.wasm')));

// litert::ElementType to NumPy's types. Not in the list: strings, resources and types below 8 bits.
const kTypes = {1: '<f4', 2: '<i4', 3: '|u1', 4: '<i8', 6: '|b1', 7: '<i2', 8: '<c8', 9: '|i1', 10: '<f2', 11: '<f8',
                13: '<u8', 16: '<u4', 17: '<u2'};

// Messages without places in LiteRT's sources, each once.
function shortened(messages) {
  const parts = messages.flatMap((message) => message.split(/└|\n/)).map(
      (part) => part.replace(/ERROR:/g, '').replace(/\[[^\]]*:\d+\]|\S+\.(cc|h):\d+/g, '').trim());
  return [...new Set(parts)].filter((part) => part !== '').join('; ') || messages.join('; ');
}

class Failure extends Error {
  constructor(status, why) {
    super(why);
    this.status = status;
  }
}

function readNpy(file) {
  const bytes = fs.readFileSync(file);
  const wide = bytes[6] > 1;  // version 1 has a length of 16 bits
  const begin = wide ? 12 : 10;
  const end = begin + (wide ? bytes.readUInt32LE(8) : bytes.readUInt16LE(8));
  const header = bytes.toString('latin1', begin, end);
  const type = header.match(/'descr':\s*'(.*?)'/)[1];
  const shape = header.match(/'shape':\s*\((.*?)\)/)[1].split(',').filter((dim) => dim.trim() !== '').map(Number);
  return {type, shape, data: bytes.subarray(end)};
}

// Unknown dims are 1.
function zeros(type, declared) {
  const shape = declared.map((dim) => Math.max(dim, 1));
  return {type, shape, data: Buffer.alloc(shape.reduce((product, dim) => product * dim, Number(type.slice(2))))};
}

function writeNpy(file, type, shape, data) {
  const dims = shape.length === 1 ? `${shape[0]},` : shape.join(', ');
  const text = `{'descr': '${type}', 'fortran_order': False, 'shape': (${dims}), }`;
  const header = text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11) + '\n';
  const prefix = Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, header.length & 255, header.length >> 8]);
  fs.writeFileSync(file, Buffer.concat([prefix, Buffer.from(header, 'latin1'), data]));
}

// A std::vector of the module as an array.
const list = (vector) => Array.from({length: vector.size()}, (_, i) => vector.get(i));

class Instance {
  static async create() {
    const instance = new Instance();
    instance.log = [];
    const print = (line) => instance.log.push(line);
    instance.module = await createInstance({
      print, printErr: print,
      instantiateWasm: (imports, done) => {
        done(new WebAssembly.Instance(binary, imports), binary);
        return {};
      },
    });
    instance.module.setupLogging();
    instance.environment = instance.module.LiteRtEnvironment.create(null);
    return instance;
  }

  // Lines of the log that report an error.
  errors() {
    return this.log.filter((line) => line.startsWith('ERROR'));
  }

  // Performs a step, whose failure becomes the status. A trap of WebAssembly is a crash in each of them.
  async step(status, action) {
    try {
      return await action();
    } catch (error) {
      if (error instanceof Failure) throw error;
      let text = error && error.message ? error.message : String(error);
      if (typeof error === 'number') text = this.module.getExceptionMessage(error).join(': ');
      const crashed = error instanceof WebAssembly.RuntimeError;
      throw new Failure(crashed ? 'crash' : status, shortened([text, ...this.errors()]));
    }
  }

  load(file) {
    const bytes = fs.readFileSync(file);
    const address = this.module._malloc(bytes.length);  // must outlive the model
    this.module.HEAPU8.set(bytes, address);
    this.model = this.module.loadModel(this.environment, address, bytes.length);
    const signature = this.model.getSignature(0);
    this.inputs = list(signature.inputNames());
    this.outputs = list(signature.outputNames());
  }

  async compile() {
    const options = {accelerator: 'wasm', cpuOptions: {numThreads: 1}};
    this.compiled = await this.module.compileModel(this.environment, this.model, options);
  }

  // A buffer with the contents of a .npy file, or with zeros.
  buffer(index, file) {
    const m = this.module;
    const declared = this.model.getInputTensorType(0, index);
    const element = declared.elementType();
    const expected = kTypes[element.value];
    if (expected === undefined) throw new Failure('inputs', `input ${this.inputs[index]} is of type ${element.value}`);
    const {type, shape, data} = file ? readNpy(file) : zeros(expected, list(declared.layout().dimensions()));
    if (expected !== type) throw new Failure('inputs', `input ${this.inputs[index]} is ${expected}, not ${type}`);
    const dims = new m.VectorInt32();
    for (const dim of shape) dims.push_back(dim);
    const ranked = m.LiteRtRankedTensorType.create(element, m.LiteRtLayout.create(dims));
    const kind = m.LiteRtTensorBufferType.HOST_MEMORY;
    const buffer = m.LiteRtTensorBuffer.createManaged(this.environment, kind, ranked, Math.max(1, data.length));
    m.HEAPU8.set(data, buffer.lock(m.LiteRtTensorBufferLockMode.WRITE));
    buffer.unlock();
    return buffer;
  }

  buffers(files) {
    if (files === undefined) return this.inputs.map((name, i) => this.buffer(i));
    const named = this.inputs.every((name) => name in files);
    const inOrder = Object.values(files);
    if (inOrder.length !== this.inputs.length)
      throw new Failure('inputs', `${this.inputs.length} inputs, not ${inOrder.length}`);
    return this.inputs.map((name, i) => this.buffer(i, named ? files[name] : inOrder[i]));
  }

  async runOnce(buffers) {
    this.log.length = 0;
    const results = await this.compiled.run(0, buffers);
    // This release returns success when an op fails, and leaves the results as they were; the log has the error.
    if (this.errors().length > 0) throw new Failure('run', shortened(this.errors()));
    return Array.isArray(results) ? results : list(results);
  }

  contents(result, index) {
    const type = result.tensorType();
    const descr = kTypes[type.elementType().value];
    if (descr === undefined) throw new Failure('run', `output ${this.outputs[index]} is of type ${type.elementType().value}`);
    const begin = result.lock(this.module.LiteRtTensorBufferLockMode.READ);
    const data = Buffer.from(this.module.HEAPU8.slice(begin, begin + result.packedSize()));
    result.unlock();
    return {descr, shape: list(type.layout().dimensions()), data};
  }

  // The results of the first run. Results whose size is computed are not written, and only a second run reports this.
  async run(buffers) {
    const results = (await this.runOnce(buffers)).map((result, i) => this.contents(result, i));
    await this.runOnce(buffers);
    return results;
  }

  write(results, folder) {
    fs.mkdirSync(folder, {recursive: true});
    results.forEach(({descr, shape, data}, i) => writeNpy(path.join(folder, `out${i}.npy`), descr, shape, data));
  }
}

async function perform(job) {
  const instance = await Instance.create();
  try {
    await instance.step('load', () => instance.load(job.model));
    await instance.step('compile', () => instance.compile());
    const buffers = await instance.step('inputs', () => instance.buffers(job.inputs));
    const results = await instance.step('run', () => instance.run(buffers));
    await instance.step('run', () => instance.write(results, job.output));
    return {status: 'ok', names: instance.outputs};
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return {status: error.status, why: error.message};
  }
}

(async () => {
  for await (const line of readline.createInterface({input: process.stdin}))
    console.log(JSON.stringify(await perform(JSON.parse(line))));
})().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
