// SPDX-License-Identifier: Apache-2.0
#include "host/graph/npy.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace fusebox {
namespace {

struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<int64_t> shape;
};

struct ElementKind {
  std::string_view descr;  // without the byte order
  DType type;
};
constexpr ElementKind kKinds[] = {
    {"f4", DType::kF32},
    {"f8", DType::kF64},
    {"f2", DType::kF16},
    {"i1", DType::kI8},
    {"i2", DType::kI16},
    {"i4", DType::kI32},
    {"i8", DType::kI64},
    {"u1", DType::kU8},
    {"u2", DType::kU16},
    {"u4", DType::kU32},
    {"u8", DType::kU64},
    {"b1", DType::kBool},
    {"c8", DType::kComplex64},
    {"c16", DType::kComplex128},
    // Write only: reading uses the first row of a name.
    {"u2", DType::kBF16},
    {"u1", DType::kF8E4M3FN},
    {"u1", DType::kF8E5M2},
};

// The text after 'key': in the header's Python dictionary.
std::string_view After(std::string_view header, std::string_view key) {
  for (const char quote : {'\'', '"'}) {
    const std::string quoted = quote + std::string(key) + quote;
    const size_t at = header.find(quoted);
    if (at == std::string_view::npos) continue;
    const size_t value = header.find_first_not_of(" :", at + quoted.size());
    return value == std::string_view::npos ? std::string_view() : header.substr(value);
  }
  return {};
}

Result<std::vector<int64_t>> ParseShape(std::string_view text) {
  if (text.empty() || text[0] != '(') return Invalid("header has no shape");
  std::vector<int64_t> dims;
  text.remove_prefix(1);
  while (!text.empty() && text[0] != ')') {
    if (text[0] == ' ' || text[0] == ',') {
      text.remove_prefix(1);
      continue;
    }
    int64_t dim = 0;
    if (text[0] < '0' || text[0] > '9') return Invalid("header has an invalid shape");
    while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
      if (__builtin_mul_overflow(dim, 10, &dim) || __builtin_add_overflow(dim, text[0] - '0', &dim)) {
        return Invalid("header has a dimension that is too large");
      }
      text.remove_prefix(1);
    }
    dims.push_back(dim);
  }
  if (text.empty()) return Invalid("header has an invalid shape");
  return dims;
}

Result<Header> ParseHeader(std::string_view text) {
  Header header;
  const std::string_view descr = After(text, "descr");
  if (descr.size() < 2 || (descr[0] != '\'' && descr[0] != '"'))
    return Unsupported("structured arrays are not supported");
  header.descr = descr.substr(1, descr.find(descr[0], 1) - 1);
  header.fortran = After(text, "fortran_order").starts_with("True");
  FUSEBOX_ASSIGN(header.shape, ParseShape(After(text, "shape")));
  return header;
}

void AppendUtf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (c >> 18 & 7));
    out += static_cast<char>(0x80 | (c >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

std::string ReadCell(std::string_view cell, bool wide) {
  if (!wide) {
    const size_t last = cell.find_last_not_of('\0');
    return std::string(cell.substr(0, last == std::string_view::npos ? 0 : last + 1));
  }
  std::vector<uint32_t> points(cell.size() / 4);
  std::memcpy(points.data(), cell.data(), points.size() * 4);
  while (!points.empty() && points.back() == 0) points.pop_back();
  std::string text;
  for (const uint32_t c : points) AppendUtf8(text, c);
  return text;
}

// Converts column-major to row-major order; `move(from, to)` copies one element.
template <class F>
void ForEachTransposed(const std::vector<int64_t>& shape, size_t count, F&& move) {
  std::vector<int64_t> index(shape.size(), 0);
  for (size_t to = 0; to < count; ++to) {
    size_t from = 0;
    for (size_t d = shape.size(); d-- > 0;)
      from = from * static_cast<size_t>(shape[d]) + static_cast<size_t>(index[d]);
    move(from, to);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

Result<Tensor> ReadElements(const Header& header, std::string_view payload) {
  const std::string_view descr = header.descr;
  if (descr.size() < 3) return Unsupported("element type " + header.descr + " is not supported");
  const std::string_view name = descr.substr(1);
  const bool text = name[0] == 'S' || name[0] == 'U';
  size_t size = 0;
  Tensor tensor;
  tensor.type.shape = Shape(header.shape);
  const auto kind = std::ranges::find(kKinds, name, &ElementKind::descr);
  if (text) {
    for (const char c : name.substr(1)) {
      if (c < '0' || c > '9' || size > (size_t{1} << 28))
        return Unsupported("element type " + header.descr + " is not supported");
      size = size * 10 + static_cast<size_t>(c - '0');
    }
    if (name[0] == 'U') size *= 4;
    tensor.type.dtype = DType::kString;
  } else if (kind == std::end(kKinds)) {
    return Unsupported("element type " + header.descr + " is not supported");
  } else {
    tensor.type.dtype = kind->type;
    size = BitsOf(kind->type) / 8;
  }
  if (descr[0] == '>' && size > 1) return Unsupported("big-endian arrays are not supported");
  const auto count = tensor.type.shape.element_count();
  size_t bytes = 0;
  if (!count || __builtin_mul_overflow(static_cast<size_t>(*count), size, &bytes) || bytes > payload.size()) {
    return Invalid("holds " + std::to_string(payload.size()) + " bytes of data, too few for " +
                   ToString(tensor.type));
  }
  if (size == 0 && *count > (int64_t{1} << 20)) return Invalid("holds too many empty strings");
  const auto elements = static_cast<size_t>(*count);
  if (text) {
    std::vector<std::string> cells(elements);
    const auto move = [&](size_t from, size_t to) {
      cells[to] = ReadCell(payload.substr(from * size, size), name[0] == 'U');
    };
    if (header.fortran) {
      ForEachTransposed(header.shape, elements, move);
    } else {
      for (size_t i = 0; i < elements; ++i) move(i, i);
    }
    size_t total = 4 * (cells.size() + 2);
    for (const std::string& cell : cells) total += cell.size();
    if (total > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
      return Unsupported("holds more than 2 GiB of text");
    tensor.data = PackStrings(cells);
    return tensor;
  }
  tensor.data = Buffer::Make(bytes, [&](std::span<std::byte> out) {
    if (!header.fortran) {
      if (bytes > 0) std::memcpy(out.data(), payload.data(), bytes);
      return;
    }
    ForEachTransposed(header.shape, elements, [&](size_t from, size_t to) {
      std::memcpy(out.data() + to * size, payload.data() + from * size, size);
    });
  });
  return tensor;
}

std::string Preamble(const std::string& descr, const std::vector<int64_t>& shape) {
  std::string dict = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < shape.size(); ++i) dict += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  dict += shape.size() == 1 ? ",), }" : "), }";
  constexpr size_t kFixed = 10;  // magic, version, length
  dict.append(63 - (kFixed + dict.size()) % 64, ' ');
  dict += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(dict.size() & 0xff);
  out += static_cast<char>(dict.size() >> 8);
  return out + dict;
}

}  // namespace

Result<Tensor> ParseNpy(std::string_view bytes, const std::string& name) {
  if (!bytes.starts_with("\x93NUMPY") || bytes.size() < 12) return Invalid(name + ": not a .npy file");
  const auto version = static_cast<unsigned char>(bytes[6]);
  if (version < 1 || version > 3) return Unsupported(name + ": .npy version " + std::to_string(version));
  const size_t start = version == 1 ? 10 : 12;
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, start - 8);
  if (length > bytes.size() - start) return Invalid(name + ": header is truncated");
  auto header = ParseHeader(bytes.substr(start, length));
  if (!header) return std::unexpected(std::move(header.error()).At(name));
  return ReadElements(*header, bytes.substr(start + length)).At(name);
}

Result<Tensor> ReadNpy(const std::string& path) {
  FUSEBOX_ASSIGN(const Buffer file, MapFile(path));
  return ParseNpy({reinterpret_cast<const char*>(file.data()), file.size()}, path);
}

Result<std::string> FormatNpy(const Tensor& tensor) {
  if (!tensor.type.shape.is_static())
    return Invalid("a tensor of type " + ToString(tensor.type) + " cannot be saved");
  const std::vector<int64_t>& shape = tensor.type.shape.dims();
  if (tensor.type.dtype == DType::kString) {
    FUSEBOX_ASSIGN(const std::vector<std::string> strings, UnpackStrings(tensor.data));
    size_t width = 1;
    for (const std::string& text : strings) width = std::max(width, text.size());
    std::string out = Preamble("|S" + std::to_string(width), shape);
    for (const std::string& text : strings) out.append(text).append(width - text.size(), '\0');
    return out;
  }
  const auto kind = std::ranges::find(kKinds, tensor.type.dtype, &ElementKind::type);
  if (kind == std::end(kKinds))
    return Unsupported("element type " + std::string(Name(tensor.type.dtype)) + " has no .npy form");
  const bool single = BitsOf(tensor.type.dtype) == 8;
  std::string out = Preamble((single ? "|" : "<") + std::string(kind->descr), shape);
  return out.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
}

Status WriteNpy(const std::string& path, const Tensor& tensor) {
  Result<std::string> bytes = FormatNpy(tensor);
  if (!bytes) return std::unexpected(std::move(bytes.error()).At(path));
  return WriteFile(path, std::as_bytes(std::span(*bytes)));
}

}  // namespace fusebox
