// Writing DocNode trees as YAML or JSON.
//
// The codecs build a tree and this file decides how it looks: block maps with short lists and small
// maps of scalars on one line in YAML, two-space indentation in JSON, or none at all. A text that
// YAML could take for something else is quoted, so that reading it back, here or elsewhere, gives
// the same text.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/document.h"

namespace muster::model {

enum class TextFormat : std::uint8_t { kYaml, kJson };

DocNode TextNode(std::string_view text);   // a JSON string
DocNode PlainNode(std::string_view text);  // a number, true or false
DocNode NumberNode(std::int64_t value);
DocNode BoolNode(bool value);
DocNode MapNode();
DocNode ListNode();
DocNode TextListNode(const std::vector<std::string>& texts);
DocNode TextMapNode(const std::map<std::string, std::string>& texts);

// Adds `value` under `key` to a map and returns it there.
DocNode& Put(DocNode& map, std::string_view key, DocNode value);

std::string WriteDocument(const DocNode& node, TextFormat format);
std::string WriteYaml(const DocNode& node);
std::string WriteJson(const DocNode& node);
std::string WriteJsonLine(const DocNode& node);  // without a space or an end of line between

}  // namespace muster::model
