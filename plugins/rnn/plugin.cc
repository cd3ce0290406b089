// SPDX-License-Identifier: Apache-2.0
#include <fusebox/plugin.hpp>

#include "plugins/rnn/keras_lstm_rule.h"
#include "plugins/rnn/lstm_kernel.h"

FUSEBOX_PLUGIN("fusebox.rnn", "1.0.0", fusebox::rnn::KerasLstmRule, fusebox::rnn::LstmKernel)
