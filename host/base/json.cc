// SPDX-License-Identifier: Apache-2.0
#include "host/base/json.h"

#include <algorithm>
#include <set>
#include <vector>

namespace fusebox {
namespace {

constexpr int kMaxDepth = 100;

Position PositionAt(std::string_view text, size_t offset) {
  Position position;
  for (const char c : text.substr(0, std::min(offset, text.size()))) {
    if (c == '\n') {
      ++position.line;
      position.column = 1;
    } else {
      ++position.column;
    }
  }
  return position;
}

// Scans valid JSON. On other text it stops early and never leaves the text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  size_t at() const { return at_; }
  void Skip() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  bool Take(char c) {
    Skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  // A string token, quotes included.
  std::string_view String() {
    Skip();
    const size_t begin = at_;
    if (!Take('"')) return {};
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    at_ = std::min(at_ + 1, text_.size());
    return text_.substr(begin, at_ - begin);
  }
  void Value() {
    int depth = 0;
    do {
      Skip();
      if (at_ >= text_.size()) return;
      const char c = text_[at_];
      if (c == '"') {
        String();
      } else if (c == '{' || c == '[') {
        ++depth;
        ++at_;
      } else if (c == '}' || c == ']') {
        --depth;
        ++at_;
      } else if (c == ',' || c == ':') {
        ++at_;
      } else {
        while (at_ < text_.size() &&
               std::string_view(",:]} \t\r\n").find(text_[at_]) == std::string_view::npos)
          ++at_;
      }
    } while (depth > 0);
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

std::string Unquote(std::string_view token) {
  const auto value = nlohmann::json::parse(token, nullptr, false);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::vector<std::string> Tokens(std::string_view pointer) {
  std::vector<std::string> tokens;
  for (size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] == '/') {
      tokens.emplace_back();
    } else if (!tokens.empty()) {
      const bool escaped = pointer[i] == '~' && i + 1 < pointer.size();
      tokens.back() += !escaped ? pointer[i] : pointer[++i] == '1' ? '/' : '~';
    }
  }
  return tokens;
}

// Moves the scanner from the start of a container to the value of `token`. *place: the position to report.
bool Enter(Scanner& scan, const std::string& token, size_t* place) {
  if (scan.Take('{')) {
    do {
      scan.Skip();
      const size_t key_at = scan.at();
      const std::string_view key = scan.String();
      if (key.empty() || !scan.Take(':')) return false;
      scan.Skip();
      if (Unquote(key) == token) {
        *place = key_at;
        return true;
      }
      scan.Value();
    } while (scan.Take(','));
  } else if (scan.Take('[')) {
    for (int i = 0;; ++i) {
      scan.Skip();
      if (std::to_string(i) == token) {
        *place = scan.at();
        return true;
      }
      scan.Value();
      if (!scan.Take(',')) return false;
    }
  }
  return false;
}

std::string Reason(std::string_view what) {
  const size_t start = what.find("syntax error");
  return std::string(start == std::string_view::npos ? what : what.substr(start));
}

size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string Place(std::string_view name, Position position) {
  return std::string(name) + ":" + std::to_string(position.line) + ":" + std::to_string(position.column);
}

Result<nlohmann::json> ParseJson(std::string_view text, std::string_view name) {
  using nlohmann::json;
  // The library's message differs between versions.
  if (text.find_first_not_of(" \t\r\n") == text.npos)
    return Invalid(Place(name, {1, 1}) + ": empty file, expected JSON");
  bool too_deep = false;
  std::string duplicate;
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, json::parse_event_t event, json& value) {
    too_deep = too_deep || depth > kMaxDepth;
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second &&
        duplicate.empty())
      duplicate = value.get<std::string>();
    return true;
  };
  try {
    json value = json::parse(text, watch);
    if (too_deep) return Invalid(std::string(name) + ": nested deeper than " + std::to_string(kMaxDepth));
    if (!duplicate.empty()) return Invalid(std::string(name) + ": key \"" + duplicate + "\" is duplicated");
    return value;
  } catch (const json::parse_error& error) {
    const size_t offset = error.byte == 0 ? 0 : error.byte - 1;
    return Invalid(Place(name, PositionAt(text, offset)) + ": " + Reason(error.what()));
  } catch (const json::exception& error) {
    return Invalid(std::string(name) + ": " + error.what());
  }
}

Position PositionOf(std::string_view text, std::string_view json_pointer) {
  Scanner scan(text);
  scan.Skip();
  size_t place = scan.at();
  for (const std::string& token : Tokens(json_pointer)) {
    if (!Enter(scan, token, &place)) break;
  }
  return PositionAt(text, place);
}

std::string Nearest(std::string_view word, std::span<const std::string> candidates) {
  constexpr size_t kLongest = 100;  // the edit distance is quadratic, and words come from files
  size_t best = std::max<size_t>(1, word.size() / 3) + 1;
  std::string nearest;
  if (word.size() > kLongest) return nearest;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongest) continue;
    const size_t distance = Distance(word, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string DidYouMean(std::string_view word, std::span<const std::string> candidates) {
  const std::string nearest = Nearest(word, candidates);
  return nearest.empty() ? nearest : "; did you mean \"" + nearest + "\"?";
}

}  // namespace fusebox
