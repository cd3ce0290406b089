# SPDX-License-Identifier: Apache-2.0
"""keyword_spotting.py MODEL FILE.wav [--labels FILE] [--hop SAMPLES]: runs a model of raw audio over a WAV file.

MODEL has one input of samples, f32[1,N] or i16[1,N], and scores as output. Each window of N samples is scored, HOP
samples after the one before (default: half a window).
"""
import argparse
import wave

import numpy as np

import fusebox


def read_wav(path):
    """Samples of the first channel as i16, and the rate."""
    with wave.open(path, 'rb') as file:
        if file.getsampwidth() != 2:
            raise SystemExit(f'{path}: {8 * file.getsampwidth()} bits per sample, expected 16')
        data = np.frombuffer(file.readframes(file.getnframes()), '<i2')
        return data.reshape(-1, file.getnchannels())[:, 0], file.getframerate()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('model')
    parser.add_argument('audio')
    parser.add_argument('--labels')
    parser.add_argument('--hop', type=int)
    arguments = parser.parse_args()

    session = fusebox.Session(arguments.model)
    info, = session.inputs
    size = info.shape[-1]
    audio, rate = read_wav(arguments.audio)
    if info.dtype == np.float32:
        audio = audio.astype(np.float32) / 32768
    audio = np.pad(audio, (0, max(0, size - len(audio))))
    labels = open(arguments.labels, encoding='utf-8').read().splitlines() if arguments.labels else None

    window = session.input(0)  # memory of the session, filled in place
    for start in range(0, len(audio) - size + 1, arguments.hop or size // 2):
        window[...] = audio[start:start + size].reshape(info.shape)
        session.invoke()
        scores = session.output(0).reshape(-1)
        best = int(np.argmax(scores))
        print(f'{start / rate:7.2f} s  {labels[best] if labels else f"class {best}"}  {scores[best]:.3f}')


if __name__ == '__main__':
    main()
