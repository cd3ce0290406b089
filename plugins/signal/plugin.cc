// SPDX-License-Identifier: Apache-2.0
#include <fusebox/plugin.hpp>

#include "plugins/signal/audio.h"
#include "plugins/signal/filter_bank.h"
#include "plugins/signal/spectrum.h"
#include "plugins/signal/stream.h"

FUSEBOX_PLUGIN("fusebox.signal", "1.0.0", fusebox::signal::Window, fusebox::signal::AutoScale,
               fusebox::signal::Rfft, fusebox::signal::Irfft, fusebox::signal::Energy,
               fusebox::signal::FilterBank, fusebox::signal::FilterBankSquareRoot,
               fusebox::signal::SpectralSubtraction, fusebox::signal::Pcan, fusebox::signal::FilterBankLog,
               fusebox::signal::Framer, fusebox::signal::OverlapAdd, fusebox::signal::Stacker,
               fusebox::signal::Delay, fusebox::signal::AudioSpectrogram, fusebox::signal::Mfcc)
