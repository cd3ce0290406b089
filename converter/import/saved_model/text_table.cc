// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/text_table.h"

#include <charconv>
#include <string_view>
#include <vector>

#include "converter/import/saved_model/import.h"

namespace fusebox::saved_model {
namespace {

// A column under construction.
class ColumnBuilder {
 public:
  explicit ColumnBuilder(const TextTable::Column& column) : column_(column) {}

  Status Add(std::string_view line, int64_t number, const TextTable& table) {
    if (column_.index == kWholeLine) return AddText(line);
    if (column_.index == kLineNumber)
      return AddText(std::to_string(
          static_cast<int64_t>(static_cast<uint64_t>(number) + static_cast<uint64_t>(table.offset))));
    int64_t at = 0;
    for (std::string_view rest = line;; ++at) {
      const size_t end = table.delimiter.empty() ? std::string_view::npos : rest.find(table.delimiter);
      if (at == column_.index) return AddText(rest.substr(0, end));
      if (end == std::string_view::npos) break;
      rest.remove_prefix(end + table.delimiter.size());
    }
    return Invalid("it has no column " + std::to_string(column_.index));
  }

  Result<Tensor> Finish() {
    switch (column_.dtype) {
      case DType::kString: return Of(strings_.size(), PackStrings(strings_));
      case DType::kI64: return Of(whole_.size(), Buffer::Of<int64_t>(whole_));
      case DType::kI32:
        return Of(whole_.size(), Buffer::Of<int32_t>(std::vector<int32_t>(whole_.begin(), whole_.end())));
      case DType::kF32: return Of(reals_.size(), Buffer::Of<float>(reals_));
      default: return Unsupported("a column of " + std::string(Name(column_.dtype)));
    }
  }

 private:
  Result<Tensor> Of(size_t count, Buffer data) const {
    return Tensor{{column_.dtype, {static_cast<int64_t>(count)}}, std::move(data)};
  }

  template <class T>
  static Status Parse(std::string_view text, std::vector<T>& out) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      return Invalid("\"" + std::string(text.substr(0, 40)) + "\" is not a number");
    out.push_back(value);
    return {};
  }

  Status AddText(std::string_view text) {
    if (column_.dtype == DType::kF32) return Parse(text, reals_);
    if (column_.dtype != DType::kString) {
      FUSEBOX_TRY(Parse(text, whole_));
      if (column_.dtype == DType::kI32 && whole_.back() != static_cast<int32_t>(whole_.back()))
        return Invalid("\"" + std::string(text) + "\" does not fit into 32 bits");
      return {};
    }
    strings_.emplace_back(text);
    return {};
  }

  TextTable::Column column_;
  std::vector<std::string> strings_;
  std::vector<int64_t> whole_;
  std::vector<float> reals_;
};

}  // namespace

Result<std::pair<Tensor, Tensor>> ReadTextTable(const TextTable& table) {
  for (const DType dtype : {table.key.dtype, table.value.dtype})
    if (dtype != DType::kString && dtype != DType::kI64 && dtype != DType::kI32 && dtype != DType::kF32)
      return Unsupported("a column of " + std::string(Name(dtype)));
  FUSEBOX_ASSIGN(const Buffer file, MapFile(table.path));
  std::string_view rest(reinterpret_cast<const char*>(file.data()), file.size());
  ColumnBuilder keys(table.key);
  ColumnBuilder values(table.value);
  for (int64_t number = 0; !rest.empty() && (table.most < 0 || number < table.most); ++number) {
    const size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::string place = table.path + ": line " + std::to_string(number + 1);
    FUSEBOX_TRY(keys.Add(line, number, table).At(place));
    FUSEBOX_TRY(values.Add(line, number, table).At(place));
  }
  FUSEBOX_ASSIGN(Tensor first, keys.Finish().At(table.path));
  FUSEBOX_ASSIGN(Tensor second, values.Finish().At(table.path));
  return std::pair(std::move(first), std::move(second));
}

}  // namespace fusebox::saved_model
