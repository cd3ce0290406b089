# SPDX-License-Identifier: Apache-2.0
"""streaming_lstm.py MODEL [--chunks N]: feeds a stateful LSTM chunk by chunk, as values arrive.

The session keeps the state between runs. Two streams use two sessions of one model; reset_state starts a new stream.
"""
import argparse

import numpy as np

import fusebox


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('model')
    parser.add_argument('--chunks', type=int, default=4)
    arguments = parser.parse_args()

    model = fusebox.Model(arguments.model)
    first, second = fusebox.Session(model), fusebox.Session(model)
    x, = first.inputs
    stream = np.random.default_rng(1).uniform(-1, 1, (arguments.chunks, *x.shape)).astype(x.dtype)

    def run(session):
        return [next(iter(session.run(chunk).values())) for chunk in stream]
    outputs = run(first)
    for i, output in enumerate(outputs):
        print(f'chunk {i}: {np.array2string(output.reshape(-1)[:4], precision=4)}')

    second.run(stream[0])  # another stream has no influence on the first
    first.reset_state()
    again = run(first)
    assert all(np.array_equal(a, b) for a, b in zip(outputs, again)), 'a reset stream differs from a new one'
    repeated = [next(iter(first.run(stream[0]).values())) for _ in range(2)]
    print('state matters' if not np.array_equal(*repeated) else 'the model keeps no state')


if __name__ == '__main__':
    main()
