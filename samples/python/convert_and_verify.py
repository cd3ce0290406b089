# SPDX-License-Identifier: Apache-2.0
"""convert_and_verify.py MODEL OUT.tflite: converts, quantizes, and compares the result with the float model.

Prints what was fused, the sizes, and the largest differences; exits 1 if the models differ by more than --atol.
"""
import argparse
import sys

import numpy as np

import fusebox


def samples(model, count):
    """Calibration data: here random, in practice hundreds of real inputs."""
    session = fusebox.Session(model)
    rng = np.random.default_rng(1)
    for _ in range(count):
        yield {info.name: rng.uniform(-1, 1, np.abs(info.shape)).astype(info.dtype) for info in session.inputs}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('model')
    parser.add_argument('output')
    parser.add_argument('--atol', type=float, default=0.05)
    arguments = parser.parse_args()

    exact = fusebox.convert(arguments.model, batch=1, verify='strict')
    for site in exact.report['sites']:
        print(f'{site["composite"]} at {site["location"]}: {site["reason"]}; {site.get("verification", "")}')
    int8 = fusebox.convert(arguments.model, batch=1, quantize='int8', calibration=samples(exact.content, 100))
    print(f'float: {len(exact.content)} bytes, int8: {len(int8.content)} bytes')

    comparison = fusebox.compare(int8.content, exact.content, runs=10, atol=arguments.atol)
    print(comparison)
    with open(arguments.output, 'wb') as file:
        file.write(int8.content)
    return 0 if comparison else 1


if __name__ == '__main__':
    sys.exit(main())
