#include "model/document_builder.h"

#include <algorithm>
#include <set>

namespace muster::model {
namespace {

// Copies made for aliases may not hold much more text than the largest file.
constexpr std::size_t kMaxTextBytes = 2 * kMaxDocumentBytes;

}  // namespace

void DocumentBuilder::Count(Mark mark, std::size_t bytes) {
  bytes_ += bytes;
  if (++nodes_ > kMaxDocumentNodes || bytes_ > kMaxTextBytes) {
    throw DocumentTooLarge(mark, "the file holds too many values once its aliases are expanded");
  }
}

void DocumentBuilder::Charge(const DocNode& node, std::size_t depth, Mark mark) {
  if (depth > kMaxDocumentDepth) throw DocumentTooLarge(mark, "the file is nested too deeply");
  Count(mark, node.text.size() + node.key.size());
  for (const auto& child : node.children) Charge(child, depth + 1, mark);
}

void DocumentBuilder::StartDocument(Mark mark) {
  if (++started_ > kMaxDocumentsInFile) {
    throw DocumentTooLarge(mark, "the file holds too many documents");
  }
  anchors_.clear();
}

void DocumentBuilder::Scalar(Mark mark, std::string text, bool quoted, std::size_t anchor) {
  Count(mark, text.size());
  DocNode node;
  node.kind = DocKind::kScalar;
  node.quoted = quoted;
  node.text = std::move(text);
  node.mark = mark;
  Attach(std::move(node), anchor);
}

void DocumentBuilder::Null(Mark mark, std::size_t anchor) {
  Count(mark, 0);
  DocNode node;
  node.mark = mark;
  Attach(std::move(node), anchor);
}

void DocumentBuilder::Open(DocKind kind, Mark mark, std::size_t anchor) {
  if (open_.size() >= kMaxDocumentDepth) {
    throw DocumentTooLarge(mark, "the file is nested too deeply");
  }
  Count(mark, 0);
  Frame frame;
  frame.node.kind = kind;
  frame.node.mark = mark;
  frame.anchor = anchor;
  open_.push_back(std::move(frame));
}

void DocumentBuilder::Close() {
  auto frame = std::move(open_.back());
  open_.pop_back();
  if (frame.node.kind == DocKind::kMap) FinishMap(frame.node);
  Attach(std::move(frame.node), frame.anchor);
}

void DocumentBuilder::Alias(Mark mark, std::size_t anchor) {
  const auto found = anchors_.find(anchor);
  if (found == anchors_.end()) {
    problems_.Error(mark, "an alias cannot stand inside the value that it names");
    Null(mark);
    return;
  }
  Charge(found->second, open_.size() + 1, mark);
  Attach(found->second, 0);
}

void DocumentBuilder::Attach(DocNode node, std::size_t anchor) {
  if (anchor != 0) {
    Charge(node, open_.size() + 1, node.mark);  // the copy that is kept for later is paid for too
    anchors_[anchor] = node;
  }
  if (open_.empty()) {
    if (node.kind != DocKind::kNull) documents_.push_back(std::move(node));
    return;
  }
  auto& frame = open_.back();
  if (frame.node.kind == DocKind::kSequence) {
    frame.node.children.push_back(std::move(node));
  } else if (!frame.has_key) {
    TakeKey(frame, node);
  } else {
    frame.has_key = false;
    if (!frame.key_usable) return;
    node.key = std::move(frame.key);
    node.key_mark = frame.key_mark;
    // A missing value has no place of its own; the library reports the next line.
    if (node.kind == DocKind::kNull) node.mark = node.key_mark;
    frame.node.children.push_back(std::move(node));
  }
}

void DocumentBuilder::TakeKey(Frame& frame, const DocNode& node) {
  frame.has_key = true;
  frame.key_usable = node.kind == DocKind::kScalar;
  frame.key = node.text;
  frame.key_mark = node.mark;
  if (!frame.key_usable) {
    problems_.Error(node.mark, "a key must be text, not " + DescribeNode(node));
  }
}

bool DocumentBuilder::Merge(DocNode& node, const DocNode& from) {
  if (from.kind != DocKind::kMap) return false;
  for (const auto& child : from.children) {
    Charge(child, open_.size() + 2, from.mark);
    node.children.push_back(child);
  }
  return true;
}

void DocumentBuilder::FinishMap(DocNode& node) {
  const auto is_merge = [](const DocNode& child) { return child.key == "<<"; };
  if (std::any_of(node.children.begin(), node.children.end(), is_merge)) {
    auto own = std::move(node.children);
    node.children.clear();
    std::vector<DocNode> merges;
    for (auto& child : own) (is_merge(child) ? merges : node.children).push_back(std::move(child));
    DocNode merged;
    for (const auto& merge : merges) {
      bool good = true;
      if (merge.kind == DocKind::kSequence) {
        for (const auto& item : merge.children) good = Merge(merged, item) && good;
      } else {
        good = Merge(merged, merge);
      }
      if (!good) problems_.Error(merge.key_mark, "`<<` merges maps only", "an alias of a map");
    }
    // What the map says itself wins over what it merges, and an earlier merge over a later one.
    std::set<std::string> seen;
    for (const auto& child : node.children) seen.insert(child.key);
    for (auto& child : merged.children) {
      if (seen.insert(child.key).second) node.children.push_back(std::move(child));
    }
  }
  std::map<std::string_view, Mark> first;
  std::vector<DocNode> unique;
  unique.reserve(node.children.size());  // `first` points into it
  for (auto& child : node.children) {
    const auto found = first.find(child.key);
    if (found != first.end()) {
      problems_.Error(child.key_mark, "the key " + Quoted(child.key) + " stands here twice",
                      "each key once; the first is in line " + std::to_string(found->second.line));
      continue;
    }
    unique.push_back(std::move(child));
    first.emplace(unique.back().key, unique.back().key_mark);
  }
  node.children = std::move(unique);
}

}  // namespace muster::model
