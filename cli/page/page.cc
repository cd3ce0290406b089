// SPDX-License-Identifier: Apache-2.0
#include "cli/page/page.h"

#include <array>

extern "C" {
extern const char fusebox_page_html[], fusebox_page_css[], fusebox_page_scene_js[], fusebox_page_canvas_js[],
    fusebox_page_details_js[], fusebox_page_tabs_js[], fusebox_page_main_js[];
}

namespace fusebox::cli::page {
namespace {

constexpr size_t kMostText = 400;  // bytes of a name that the page shows

// Shortens long text, but never within a UTF-8 sequence.
std::string Cut(std::string text) {
  if (text.size() <= kMostText) return text;
  const std::string size = std::to_string(text.size());
  size_t end = kMostText;
  while (end > kMostText - 4 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  return text + "... (" + size + " bytes)";
}

void CutTexts(Json& json) {
  if (json.is_string()) {
    std::string& text = json.get_ref<std::string&>();
    if (text.size() > kMostText) text = Cut(std::move(text));
  }
  if (json.is_object()) {
    for (auto& [key, value] : json.get_ref<Json::object_t&>()) CutTexts(value);
  } else if (json.is_array()) {
    for (Json& value : json) CutTexts(value);
  }
}

// "<" begins a tag, which may end the script element; it occurs in texts only.
std::string ScriptText(const Json& json) {
  const std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '<') out += "\\u003c";
    else out += c;
  }
  return out;
}

std::string HtmlText(const std::string& text) {
  // A way through JSON replaces invalid UTF-8.
  const Json valid = Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
  std::string out;
  for (const char c : valid.get_ref<const std::string&>()) {
    if (c == '<') out += "&lt;";
    else if (c == '&') out += "&amp;";
    else out += c;
  }
  return out;
}

}  // namespace

std::string PageHtml(Json data, const std::string& title) {
  CutTexts(data);
  std::string scripts;
  for (const char* script : {fusebox_page_scene_js, fusebox_page_canvas_js, fusebox_page_details_js,
                             fusebox_page_tabs_js, fusebox_page_main_js})
    scripts += script;
  const std::array<std::pair<std::string_view, std::string>, 4> texts = {{{"@TITLE@", HtmlText(Cut(title))},
                                                                          {"@STYLE@", fusebox_page_css},
                                                                          {"@DATA@", ScriptText(data)},
                                                                          {"@SCRIPTS@", std::move(scripts)}}};
  const std::string_view source = fusebox_page_html;
  std::string out;
  size_t from = 0;
  for (const auto& [mark, text] : texts) {  // in this order in the template
    const size_t at = source.find(mark, from);
    out += source.substr(from, at - from);
    out += text;
    from = at + mark.size();
  }
  return out + std::string(source.substr(from));
}

}  // namespace fusebox::cli::page
