// SPDX-License-Identifier: Apache-2.0
#include <fusebox/plugin.hpp>

#include "plugins/rnn/gru/kernel.h"
#include "plugins/rnn/lstm/basic_kernel.h"
#include "plugins/rnn/lstm/bidirectional_kernel.h"
#include "plugins/rnn/lstm/kernel.h"
#include "plugins/rnn/rnn/bidirectional_kernel.h"
#include "plugins/rnn/rnn/kernel.h"
#include "plugins/rnn/rules/keras_bidirectional.h"
#include "plugins/rnn/rules/keras_gru.h"
#include "plugins/rnn/rules/keras_lstm.h"
#include "plugins/rnn/rules/keras_simple_rnn.h"
#include "plugins/rnn/rules/lingvo_lstm.h"
#include "plugins/rnn/svdf/kernel.h"

FUSEBOX_PLUGIN("fusebox.rnn", "1.0.0", fusebox::rnn::KerasLstmRule, fusebox::rnn::KerasGruRule,
               fusebox::rnn::KerasSimpleRnnRule, fusebox::rnn::KerasBidirectionalRule,
               fusebox::rnn::LingvoLstmRule, fusebox::rnn::LstmKernel, fusebox::rnn::GruKernel,
               fusebox::rnn::RnnKernel, fusebox::rnn::RnnStepKernel, fusebox::rnn::BidirectionalRnnKernel,
               fusebox::rnn::BidirectionalKernel, fusebox::rnn::LstmStepKernel, fusebox::rnn::BasicLstmKernel,
               fusebox::rnn::SvdfKernel, fusebox::rnn::OtherLstmKernel)
