#include "model/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "model/document_builder.h"
#include "model/utf8.h"

namespace muster::model {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kCoreTag = "tag:yaml.org,2002:";

bool CheckCharacters(std::string_view text, Problems& problems) {
  Mark mark;
  for (std::size_t at = 0; at < text.size();) {
    const auto length = CharacterLength(text.substr(at));
    if (length == 0) {
      problems.Error(mark, "the file is not valid UTF-8 here", "text in UTF-8");
      return false;
    }
    const char c = text[at];
    if (IsControl(text.substr(at)) && c != '\n' && c != '\r' && c != '\t') {
      problems.Error(mark, "the file holds a control character here",
                     "text; in double quotes it can be written as \\u and four digits");
      return false;
    }
    if (c == '\n') {
      ++mark.line;
      mark.column = 1;
    } else {
      ++mark.column;
    }
    at += length;
  }
  return true;
}

// Turns the YAML library's byte positions into characters. Remembers the last place, so that a file
// of one long line costs its length once and not once per value.
class Places {
 public:
  explicit Places(std::string_view text) : text_(text), line_starts_{0} {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') line_starts_.push_back(i + 1);
    }
  }

  Mark At(const YAML::Mark& mark) {
    const auto line =
        std::min(static_cast<std::size_t>(std::max(mark.line, 0)), line_starts_.size() - 1);
    const auto wanted = std::min(
        line_starts_[line] + static_cast<std::size_t>(std::max(mark.column, 0)), text_.size());
    if (line != line_) {
      line_ = line;
      at_ = line_starts_[line];
      column_ = 1;
    }
    for (; at_ < wanted; ++at_) column_ += IsContinuation(text_[at_]) ? 0 : 1;
    for (; at_ > wanted; --at_) column_ -= IsContinuation(text_[at_ - 1]) ? 0 : 1;
    return {static_cast<int>(line_) + 1, column_};
  }

  // Whether only blanks with a tab among them stand before the first word of the line.
  bool IndentedByTab(int line) const {
    const auto start = line_starts_[static_cast<std::size_t>(line - 1)];
    const auto end = std::min(text_.find_first_not_of(" \t", start), text_.size());
    return text_.substr(start, end - start).find('\t') != std::string_view::npos;
  }

 private:
  std::string_view text_;
  std::vector<std::size_t> line_starts_;
  std::size_t line_ = 0;
  std::size_t at_ = 0;
  int column_ = 1;
};

class YamlEvents final : public YAML::EventHandler {
 public:
  YamlEvents(DocumentBuilder& builder, Places& places, Problems& problems)
      : builder_(builder), places_(places), problems_(problems) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    builder_.StartDocument(places_.At(mark));
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    builder_.Null(places_.At(mark), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    builder_.Alias(places_.At(mark), anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const auto place = places_.At(mark);
    const bool text = tag == "!" || tag == std::string(kCoreTag) + "str";
    if (!text) CheckTag(place, tag);
    builder_.Scalar(place, value, text, anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    const auto place = places_.At(mark);
    CheckTag(place, tag);
    builder_.Open(DocKind::kSequence, place, anchor);
  }
  void OnSequenceEnd() override { builder_.Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    const auto place = places_.At(mark);
    CheckTag(place, tag);
    builder_.Open(DocKind::kMap, place, anchor);
  }
  void OnMapEnd() override { builder_.Close(); }

 private:
  void CheckTag(Mark mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    problems_.Error(mark, "the tag " + Quoted(tag) + " is not supported",
                    "values without a tag, or !!str");
  }

  DocumentBuilder& builder_;
  Places& places_;
  Problems& problems_;
};

std::vector<DocNode> ParseYaml(std::string_view text, Problems& problems) {
  Places places(text);
  DocumentBuilder builder(problems);
  YamlEvents events(builder, places, problems);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(events)) {
    }
    return builder.TakeDocuments();
  } catch (const YAML::Exception& error) {
    auto mark = places.At(error.mark);
    // The library blames the start of the file for a bracket that is never closed.
    if (error.msg.find("flow not found") != std::string::npos && builder.HasOpen()) {
      mark = builder.InnermostOpen();
      problems.Error(mark, "the bracket that opens here is never closed");
    } else if (error.msg.find("EOF") == std::string::npos && places.IndentedByTab(mark.line)) {
      problems.Error(mark, "this is neither YAML nor JSON: " + error.msg,
                     "spaces at the start of a line, never tabs");
    } else {
      problems.Error(mark, "this is neither YAML nor JSON: " + error.msg);
    }
  }
  return {};
}

bool OpensLikeJson(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

}  // namespace

const DocNode* DocNode::Find(std::string_view name) const {
  for (const auto& child : children) {
    if (kind == DocKind::kMap && child.key == name) return &child;
  }
  return nullptr;
}

std::vector<DocNode> ParseDocuments(std::string_view text, Problems& problems) {
  if (text.size() > kMaxDocumentBytes) {
    problems.Error({}, "the file is too large", "at most 8Mi");
    return {};
  }
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (!CheckCharacters(text, problems)) return {};
  try {
    if (OpensLikeJson(text)) {
      Problems found = problems;
      DocumentBuilder builder(found);
      if (ParseJson(text, builder)) {
        problems = std::move(found);
        return builder.TakeDocuments();
      }
    }
    return ParseYaml(text, problems);
  } catch (const DocumentTooLarge& error) {
    problems.Error(error.mark(), error.what(),
                   std::to_string(kMaxDocumentDepth) + " levels, " +
                       std::to_string(kMaxDocumentNodes) + " values, " +
                       std::to_string(kMaxDocumentsInFile) + " documents");
  } catch (const std::exception& error) {
    problems.Error({}, std::string("the file cannot be read: ") + error.what());
  }
  return {};
}

std::string DescribeNode(const DocNode& node) {
  switch (node.kind) {
    case DocKind::kNull:
      return "nothing";
    case DocKind::kScalar:
      return node.text.empty() ? "an empty text" : Quoted(node.text);
    case DocKind::kSequence:
      return node.children.empty() ? "an empty list" : "a list";
    case DocKind::kMap:
      return node.children.empty() ? "an empty map" : "a map";
  }
  return {};
}

}  // namespace muster::model
