#include "model/document_writer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "model/utf8.h"

namespace muster::model {
namespace {

constexpr std::size_t kInlineWidth = 80;

// A JSON string, which is also a double-quoted YAML one. The YAML reader folds a raw line break and
// the other breaks of Unicode, so those are escaped as well.
std::string Escaped(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '"' || byte == '\\') {
      out += '\\';
      out += text[i];
    } else if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (IsControl(text.substr(i))) {
      // The second byte of U+0080 to U+009F is the character itself.
      const auto code = byte == 0xC2 ? static_cast<unsigned char>(text[++i]) : byte;
      constexpr std::string_view kHex = "0123456789abcdef";
      out += "\\u00";
      out += kHex[code >> 4];
      out += kHex[code & 15U];
    } else if (text.substr(i, 3) == "\xE2\x80\xA8" || text.substr(i, 3) == "\xE2\x80\xA9") {
      out += text[i + 2] == '\xA8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else if (text.substr(i, 3) == "\xEF\xBB\xBF") {
      out += "\\ufeff";
      i += 2;
    } else if (const auto length = CharacterLength(text.substr(i)); length > 0) {
      out += text.substr(i, length);
      i += length - 1;
    } else {
      out += "\\ufffd";
    }
  }
  return out + '"';
}

bool IsPlainSafe(std::string_view text) {
  constexpr std::array<std::string_view, 8> kWords = {"null", "true", "false", "yes",
                                                      "no",   "on",   "off",   "y"};
  std::string lower(text);
  for (auto& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (lower == "n" || std::find(kWords.begin(), kWords.end(), lower) != kWords.end()) return false;
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.empty() || (!letter(text[0]) && text[0] != '_' && text[0] != '/')) return false;
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return letter(c) || digit(c) || c == '_' || c == '-' || c == '.' || c == '/';
  });
}

std::string YamlScalar(const DocNode& node) {
  if (node.kind == DocKind::kNull) return "null";
  return !node.quoted || IsPlainSafe(node.text) ? node.text : Escaped(node.text);
}

std::string YamlKey(std::string_view key) {
  return IsPlainSafe(key) ? std::string(key) : Escaped(key);
}

bool IsLeaf(const DocNode& node) { return node.children.empty(); }

std::string YamlLeaf(const DocNode& node) {
  if (node.kind == DocKind::kMap) return "{}";
  if (node.kind == DocKind::kSequence) return "[]";
  return YamlScalar(node);
}

// A container of leaves on one line; empty when it does not fit.
std::string Inline(const DocNode& node) {
  const bool map = node.kind == DocKind::kMap;
  std::string out = map ? "{" : "[";
  for (const auto& child : node.children) {
    if (!IsLeaf(child)) return {};
    if (out.size() > 1) out += ", ";
    if (map) out += YamlKey(child.key) + ": ";
    out += YamlLeaf(child);
    if (out.size() > kInlineWidth) return {};
  }
  return out + (map ? "}" : "]");
}

// `first` is what stands on the line already, for the maps of a list.
void YamlBlock(const DocNode& node, std::size_t indent, bool first, std::string& out) {
  const std::string margin(indent, ' ');
  for (const auto& child : node.children) {
    if (!first) out += margin;
    first = false;
    const bool map = node.kind == DocKind::kMap;
    out += map ? YamlKey(child.key) + ":" : "-";
    const auto line = IsLeaf(child) ? YamlLeaf(child) : Inline(child);
    if (!line.empty()) {
      out += " " + line + "\n";
    } else if (!map && child.kind == DocKind::kMap) {
      out += " ";
      YamlBlock(child, indent + 2, true, out);
    } else {
      out += "\n";
      YamlBlock(child, indent + 2, false, out);
    }
  }
}

// Without an indent it is one line, without a space.
void Json(const DocNode& node, std::optional<std::size_t> indent, std::string& out) {
  if (node.kind == DocKind::kNull) {
    out += "null";
  } else if (node.kind == DocKind::kScalar) {
    out += node.quoted ? Escaped(node.text) : node.text;
  } else {
    const bool map = node.kind == DocKind::kMap;
    out += map ? '{' : '[';
    const auto deeper = indent ? std::optional(*indent + 2) : std::nullopt;
    const std::string margin = deeper ? "\n" + std::string(*deeper, ' ') : "";
    bool first = true;
    for (const auto& child : node.children) {
      if (!std::exchange(first, false)) out += ',';
      out += margin;
      if (map) out += Escaped(child.key) + (indent ? ": " : ":");
      Json(child, deeper, out);
    }
    if (indent && !first) out += "\n" + std::string(*indent, ' ');
    out += map ? '}' : ']';
  }
}

DocNode Make(DocKind kind, std::string_view text, bool quoted) {
  DocNode node;
  node.kind = kind;
  node.text = text;
  node.quoted = quoted;
  return node;
}

}  // namespace

DocNode TextNode(std::string_view text) { return Make(DocKind::kScalar, text, true); }
DocNode PlainNode(std::string_view text) { return Make(DocKind::kScalar, text, false); }
DocNode NumberNode(std::int64_t value) { return PlainNode(std::to_string(value)); }
DocNode BoolNode(bool value) { return PlainNode(value ? "true" : "false"); }
DocNode MapNode() { return Make(DocKind::kMap, {}, false); }
DocNode ListNode() { return Make(DocKind::kSequence, {}, false); }

DocNode TextListNode(const std::vector<std::string>& texts) {
  auto list = ListNode();
  for (const auto& text : texts) list.children.push_back(TextNode(text));
  return list;
}

DocNode TextMapNode(const std::map<std::string, std::string>& texts) {
  auto map = MapNode();
  for (const auto& [key, text] : texts) Put(map, key, TextNode(text));
  return map;
}

DocNode& Put(DocNode& map, std::string_view key, DocNode value) {
  value.key = key;
  map.children.push_back(std::move(value));
  return map.children.back();
}

std::string WriteDocument(const DocNode& node, TextFormat format) {
  return format == TextFormat::kYaml ? WriteYaml(node) : WriteJson(node);
}

std::string WriteYaml(const DocNode& node) {
  if (IsLeaf(node)) return YamlLeaf(node) + "\n";
  std::string out;
  YamlBlock(node, 0, false, out);
  return out;
}

std::string WriteJsonLine(const DocNode& node) {
  std::string out;
  Json(node, std::nullopt, out);
  return out;
}

std::string WriteJson(const DocNode& node) {
  std::string out;
  Json(node, 0, out);
  return out + "\n";
}

}  // namespace muster::model
