// DocumentBuilder: makes DocNode trees from a stream of events, within bounds.
//
// Both readers push what they meet; the builder keeps the open containers on a stack, resolves
// aliases by copying (counted, so that a bomb ends early), merges `<<` and finds duplicate keys.
// Going over a bound throws DocumentTooLarge, which ParseDocuments turns into a problem; it is the
// only way to stop the YAML library in the middle of a file.
#pragma once

#include <cstddef>
#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/document.h"
#include "model/problems.h"

namespace muster::model {

class DocumentTooLarge : public std::exception {
 public:
  DocumentTooLarge(Mark mark, std::string message) : mark_(mark), message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  Mark mark() const { return mark_; }

 private:
  Mark mark_;
  std::string message_;
};

class DocumentBuilder {
 public:
  explicit DocumentBuilder(Problems& problems) : problems_(problems) {}

  // `anchor` 0 means none.
  void Scalar(Mark mark, std::string text, bool quoted, std::size_t anchor = 0);
  void Null(Mark mark, std::size_t anchor = 0);
  void Open(DocKind kind, Mark mark, std::size_t anchor = 0);
  void Close();
  void Alias(Mark mark, std::size_t anchor);
  void StartDocument(Mark mark);

  bool HasOpen() const { return !open_.empty(); }
  Mark InnermostOpen() const { return open_.back().node.mark; }
  std::vector<DocNode> TakeDocuments() { return std::move(documents_); }

 private:
  struct Frame {
    DocNode node;
    std::size_t anchor = 0;
    bool has_key = false;  // of a map: the next node is the value of `key`
    bool key_usable = false;
    std::string key;
    Mark key_mark;
  };

  void Count(Mark mark, std::size_t bytes);
  void Charge(const DocNode& node, std::size_t depth, Mark mark);
  void Attach(DocNode node, std::size_t anchor);
  void TakeKey(Frame& frame, const DocNode& node);
  void FinishMap(DocNode& node);
  bool Merge(DocNode& node, const DocNode& from);

  Problems& problems_;
  std::vector<Frame> open_;
  std::map<std::size_t, DocNode> anchors_;
  std::vector<DocNode> documents_;
  std::size_t nodes_ = 0;
  std::size_t bytes_ = 0;
  std::size_t started_ = 0;
};

// Reads the whole text as one JSON value; false when it is not JSON, whatever was built until then.
bool ParseJson(std::string_view text, DocumentBuilder& builder);

}  // namespace muster::model
