// SPDX-License-Identifier: Apache-2.0
#include <fusebox/plugin.hpp>

#include "plugins/rnn/basic_lstm_kernel.h"
#include "plugins/rnn/bidirectional_kernel.h"
#include "plugins/rnn/bidirectional_rnn_kernel.h"
#include "plugins/rnn/gru_kernel.h"
#include "plugins/rnn/keras_bidirectional_rule.h"
#include "plugins/rnn/keras_gru_rule.h"
#include "plugins/rnn/keras_lstm_rule.h"
#include "plugins/rnn/keras_simple_rnn_rule.h"
#include "plugins/rnn/lingvo_lstm_rule.h"
#include "plugins/rnn/lstm_kernel.h"
#include "plugins/rnn/rnn_kernel.h"
#include "plugins/rnn/svdf_kernel.h"

FUSEBOX_PLUGIN("fusebox.rnn", "1.0.0", fusebox::rnn::KerasLstmRule, fusebox::rnn::KerasGruRule,
               fusebox::rnn::KerasSimpleRnnRule, fusebox::rnn::KerasBidirectionalRule,
               fusebox::rnn::LingvoLstmRule, fusebox::rnn::LstmKernel, fusebox::rnn::GruKernel,
               fusebox::rnn::RnnKernel, fusebox::rnn::RnnStepKernel, fusebox::rnn::BidirectionalRnnKernel,
               fusebox::rnn::BidirectionalKernel, fusebox::rnn::LstmStepKernel, fusebox::rnn::BasicLstmKernel,
               fusebox::rnn::SvdfKernel, fusebox::rnn::OtherLstmKernel)
