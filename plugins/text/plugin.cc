// SPDX-License-Identifier: Apache-2.0
#include <fusebox/plugin.hpp>

#include "plugins/text/ngrams.h"
#include "plugins/text/projection.h"
#include "plugins/text/rules.h"
#include "plugins/text/tokenizer.h"

FUSEBOX_PLUGIN("fusebox.text", "1.0.0", fusebox::text::TokenizerRule, fusebox::text::NgramsRule,
               fusebox::text::ProjectionRule, fusebox::text::WhitespaceTokenizer, fusebox::text::Ngrams,
               fusebox::text::SgnnProjection)
