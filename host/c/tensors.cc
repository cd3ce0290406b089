// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs of a session.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <limits>

#include "host/c/handles.h"
#include "host/c/tensor.h"
#include "host/graph/npy.h"

using namespace fusebox;

void c::Fill(fusebox_tensor& out, const Type& type, std::span<const std::byte> data, const std::string& name,
             const Quant* quant) {
  out.dtype = static_cast<fbx_dtype>(type.dtype);
  out.name = name.c_str();
  out.rank = type.shape.rank();
  out.dims = out.rank > 0 ? type.shape.dims().data() : nullptr;
  out.data = data.data();
  out.bytes = data.size();
  const bool has = quant != nullptr && !quant->scales.empty();
  out.scales = has ? quant->scales.data() : nullptr;
  out.zero_points = has ? quant->zero_points.data() : nullptr;
  out.scale_count = has ? quant->scales.size() : 0;
  out.scale_axis = has ? quant->axis : 0;
}

namespace {

using c::Fill;
using Slots = std::vector<Session::Slot>;

constexpr int32_t kMaxRank = 64;

Status CheckIndex(const fusebox_session& session, const char* what, int32_t index, const Slots& slots) {
  if (index >= 0 && static_cast<size_t>(index) < slots.size()) return {};
  return Invalid(fmt::format("{}: no {} {}; there are {}", session.model->name(), what, index, slots.size()));
}

Result<Shape> ShapeOf(const int64_t* dims, int32_t rank) {
  if (rank < 0 || rank > kMaxRank)
    return Invalid(fmt::format("rank {} is not between 0 and {}", rank, kMaxRank));
  if (rank > 0) FUSEBOX_C_REQUIRE(dims);
  for (int32_t i = 0; i < rank; ++i) {
    if (dims[i] < 0) return Invalid(fmt::format("dimension {} is {}; expected 0 or more", i, dims[i]));
  }
  return Shape::Of(std::span(dims, static_cast<size_t>(rank)));
}

// Returns the value that an input or output of the selected signature is.
const Value& ValueOf(const fusebox_session& session, int32_t index, bool input) {
  const Function& function = session.session->function();
  return function.value((input ? function.inputs : function.outputs)[static_cast<size_t>(index)]);
}

// Returns the number of a value in `ids`, or -1.
int32_t NumberOf(const std::vector<ValueId>& ids, int32_t index) {
  return index >= 0 && static_cast<size_t>(index) < ids.size() ? ids[static_cast<size_t>(index)] : -1;
}

Status SetValue(fusebox_session& session, int32_t index, const Type& type, std::span<const std::byte> bytes) {
  FUSEBOX_TRY(session.session->SetInput(index, {type, Buffer(nullptr, bytes)}));
  session.inputs[static_cast<size_t>(index)] = type;
  return {};
}

int32_t Int32At(const char* data, size_t index) {
  int32_t value;
  std::memcpy(&value, data + 4 * index, sizeof value);
  return value;
}

// One string of the packed ones (abi/tensor.h).
Result<std::string_view> StringAt(const fusebox_tensor& tensor, size_t index) {
  const auto* data = static_cast<const char*>(tensor.data);
  const int64_t count = tensor.bytes < 8 ? 0 : Int32At(data, 0);
  if (count < 0 || static_cast<int64_t>(tensor.bytes / 4) < count + (count > 0 ? 2 : 0))
    return Invalid("the strings are damaged");
  if (index >= static_cast<size_t>(count))
    return Invalid(fmt::format("no string {}; there are {}", index, count));
  const auto begin = static_cast<size_t>(Int32At(data, index + 1));
  const auto end = static_cast<size_t>(Int32At(data, index + 2));
  if (begin > end || end > tensor.bytes) return Invalid(fmt::format("string {} is damaged", index));
  return std::string_view(data + begin, end - begin);
}

}  // namespace

int32_t fusebox_session_input_count(const fusebox_session* session) noexcept {
  return session == nullptr ? -1 : static_cast<int32_t>(session->inputs.size());
}

int32_t fusebox_session_output_count(const fusebox_session* session) noexcept {
  return session == nullptr ? -1 : static_cast<int32_t>(session->outputs.size());
}

fusebox_status fusebox_session_find_input(const fusebox_session* session, const char* name, int32_t* index,
                                          char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(index);
    *index = -1;
    FUSEBOX_C_REQUIRE(session);
    FUSEBOX_C_REQUIRE(name);
    FUSEBOX_ASSIGN(*index, session->session->FindInput(name));
    return {};
  });
}

fusebox_status fusebox_session_find_output(const fusebox_session* session, const char* name, int32_t* index,
                                           char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(index);
    *index = -1;
    FUSEBOX_C_REQUIRE(session);
    FUSEBOX_C_REQUIRE(name);
    FUSEBOX_ASSIGN(*index, session->session->FindOutput(name));
    return {};
  });
}

fusebox_status fusebox_session_input(const fusebox_session* session, int32_t index, fusebox_tensor* out,
                                     char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(session);
    FUSEBOX_C_REQUIRE(out);
    const Slots& slots = session->session->inputs();
    FUSEBOX_TRY(c::CheckSize(*out, "FUSEBOX_TENSOR"));
    FUSEBOX_TRY(CheckIndex(*session, "input", index, slots));
    const auto at = static_cast<size_t>(index);
    Fill(*out, session->inputs[at], {}, slots[at].name, ValueOf(*session, index, true).quant.get());
    return {};
  });
}

fusebox_status fusebox_session_resize_input(fusebox_session* session, int32_t index, const int64_t* dims,
                                            int32_t rank, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(session);
    FUSEBOX_ASSIGN(const Shape shape, ShapeOf(dims, rank));
    FUSEBOX_TRY(session->session->Resize(index, shape));
    session->inputs[static_cast<size_t>(index)].shape = shape;
    return {};
  });
}

fusebox_status fusebox_session_set_input(fusebox_session* session, int32_t index, const void* data,
                                         size_t bytes, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(session);
    FUSEBOX_TRY(CheckIndex(*session, "input", index, session->session->inputs()));
    if (bytes > 0) FUSEBOX_C_REQUIRE(data);
    const Type& type = session->inputs[static_cast<size_t>(index)];
    return SetValue(*session, index, type, {static_cast<const std::byte*>(data), bytes});
  });
}

fusebox_status fusebox_session_set_strings(fusebox_session* session, int32_t index,
                                           const char* const* strings, const size_t* lengths,
                                           const int64_t* dims, int32_t rank, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(session);
    FUSEBOX_TRY(CheckIndex(*session, "input", index, session->session->inputs()));
    FUSEBOX_ASSIGN(const Shape shape, ShapeOf(dims, rank));
    const auto count = shape.element_count();
    if (!count || *count > std::numeric_limits<int32_t>::max() - 2)
      return Invalid(fmt::format("{} has too many strings", ToString(shape)));
    std::vector<std::string> values;
    for (size_t i = 0; i < static_cast<size_t>(*count); ++i) {
      FUSEBOX_C_REQUIRE(strings);
      if (strings[i] == nullptr) return Invalid(fmt::format("string {} is NULL", i));
      values.emplace_back(strings[i], lengths != nullptr ? lengths[i] : std::strlen(strings[i]));
    }
    return SetValue(*session, index, {DType::kString, shape}, PackStrings(values).bytes());
  });
}

fusebox_status fusebox_session_input_data(fusebox_session* session, int32_t index, void** data, size_t* bytes,
                                          char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(data);
    *data = nullptr;
    FUSEBOX_C_REQUIRE(session);
    FUSEBOX_ASSIGN(const std::span<std::byte> memory, session->session->InputData(index));
    *data = memory.data();
    if (bytes != nullptr) *bytes = memory.size();
    return {};
  });
}

fusebox_status fusebox_session_bind_input(fusebox_session* session, int32_t index, void* memory, size_t bytes,
                                          char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(session);
    if (bytes > 0) FUSEBOX_C_REQUIRE(memory);
    return session->session->BindInput(index, {static_cast<std::byte*>(memory), bytes});
  });
}

fusebox_status fusebox_session_bind_output(fusebox_session* session, int32_t index, void* memory,
                                           size_t bytes, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(session);
    if (bytes > 0) FUSEBOX_C_REQUIRE(memory);
    return session->session->BindOutput(index, {static_cast<std::byte*>(memory), bytes});
  });
}

fusebox_status fusebox_session_output(fusebox_session* session, int32_t index, fusebox_tensor* out,
                                      char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(session);
    FUSEBOX_C_REQUIRE(out);
    const Slots& slots = session->session->outputs();
    FUSEBOX_TRY(c::CheckSize(*out, "FUSEBOX_TENSOR"));
    FUSEBOX_TRY(CheckIndex(*session, "output", index, slots));
    const auto at = static_cast<size_t>(index);
    std::span<const std::byte> data;
    if (session->ran) {
      FUSEBOX_ASSIGN(const Tensor value, session->session->output(index));
      session->outputs[at] = value.type;
      data = value.data.bytes();
    }
    Fill(*out, session->outputs[at], data, slots[at].name, ValueOf(*session, index, false).quant.get());
    return {};
  });
}

fusebox_status fusebox_session_value(fusebox_session* session, const char* name, fusebox_tensor* out,
                                     char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(session);
    FUSEBOX_C_REQUIRE(name);
    FUSEBOX_C_REQUIRE(out);
    FUSEBOX_TRY(c::CheckSize(*out, "FUSEBOX_TENSOR"));
    FUSEBOX_ASSIGN(session->value, session->session->value(name));
    session->value_name = name;
    Fill(*out, session->value.type, session->value.data.bytes(), session->value_name, nullptr);
    return {};
  });
}

int32_t fusebox_session_value_count(const fusebox_session* session) noexcept {
  return session == nullptr ? -1 : session->session->function().value_count();
}

int32_t fusebox_session_input_value(const fusebox_session* session, int32_t index) noexcept {
  return session == nullptr ? -1 : NumberOf(session->session->function().inputs, index);
}

int32_t fusebox_session_output_value(const fusebox_session* session, int32_t index) noexcept {
  return session == nullptr ? -1 : NumberOf(session->session->function().outputs, index);
}

fusebox_status fusebox_session_value_at(fusebox_session* session, int32_t value, fusebox_tensor* out,
                                        char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(session);
    FUSEBOX_C_REQUIRE(out);
    FUSEBOX_TRY(c::CheckSize(*out, "FUSEBOX_TENSOR"));
    const Function& function = session->session->function();
    if (value < 0 || value >= function.value_count())
      return Invalid(fmt::format("{}: no value {}; there are {}", session->model->name(), value,
                                 function.value_count()));
    const Value& of = function.value(value);
    const auto computed =
        of.is_const() ? Tensor{of.type, of.data} : session->session->value(function.name, value);
    session->value = computed ? *computed : Tensor{of.type, {}};
    Fill(*out, session->value.type, session->value.data.bytes(), of.name, of.quant.get());
    return {};
  });
}

fusebox_status fusebox_tensor_string(const fusebox_tensor* tensor, size_t index, const char** text,
                                     size_t* length, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(tensor);
    FUSEBOX_C_REQUIRE(text);
    FUSEBOX_C_REQUIRE(length);
    FUSEBOX_TRY(c::CheckSize(*tensor, "FUSEBOX_TENSOR"));
    if (tensor->dtype != FBX_STRING)
      return Invalid(fmt::format("the tensor is {}, not string", fusebox_dtype_name(tensor->dtype)));
    FUSEBOX_ASSIGN(const std::string_view found, StringAt(*tensor, index));
    *text = found.data();
    *length = found.size();
    return {};
  });
}
