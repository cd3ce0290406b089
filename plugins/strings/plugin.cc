// SPDX-License-Identifier: Apache-2.0
#include <fusebox/plugin.hpp>

#include "plugins/strings/case.h"
#include "plugins/strings/edit.h"
#include "plugins/strings/numbers.h"
#include "plugins/strings/ragged.h"
#include "plugins/strings/split.h"
#include "plugins/strings/unicode.h"

namespace fusebox::strings {

using Lower = Mapped<Cased<false>>;
using Upper = Mapped<Cased<true>>;
using Normalize = Mapped<Normalized>;
using CaseFold = Mapped<CaseFolded>;
using Strip = Mapped<Stripped>;
using StaticReplace = Mapped<StaticReplaced>;
using Transcode = Mapped<Transcoded>;
using LengthOf = Measured<Length>;
using Hash = Measured<HashBucket>;
using StrongHash = Measured<StrongHashBucket>;
using StaticFullMatch = Measured<StaticMatch>;
using SplitV1 = Split<false>;
using SplitV2 = Split<true>;
using Decode = Decoded<false>;
using DecodeWithOffsets = Decoded<true>;

FUSEBOX_PLUGIN("fusebox.strings", "1.0.0", Lower, Upper, Normalize, CaseFold, Strip, StaticReplace, Replaced,
               StaticFullMatch, Match, Transcode, Decode, DecodeWithOffsets, Encoded, LengthOf, Substring,
               Joined, JoinedAxes, SplitV1, SplitV2, Ngrams, Hash, StrongHash, ToNumber, AsText, Dense,
               Counted)

}  // namespace fusebox::strings
