// Document: a YAML or JSON text as a tree that remembers where everything stood.
//
// JSON has a reader of its own (the YAML library refuses legal JSON such as surrogate pairs); a
// text that opens like JSON but is not goes to the YAML reader. Both feed one builder, which guards
// what comes from outside: at most 8 MiB, valid UTF-8 without control characters, 64 levels, and
// half a million values after aliases and `<<` merges are expanded. Time is linear in text plus
// expansion. Keys are texts, unique in their map; a second one is a problem and the first stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/problems.h"

namespace muster::model {

inline constexpr std::size_t kMaxDocumentBytes = std::size_t{8} << 20;
inline constexpr std::size_t kMaxDocumentDepth = 64;
inline constexpr std::size_t kMaxDocumentNodes = 500'000;
inline constexpr std::size_t kMaxDocumentsInFile = 1'000;

enum class DocKind : std::uint8_t { kNull, kScalar, kSequence, kMap };

struct DocNode {
  DocKind kind = DocKind::kNull;
  bool quoted = false;  // a scalar that is text whatever it looks like
  std::string key;      // where the node is a map's value
  Mark key_mark;
  std::string text;  // of a scalar, as written
  Mark mark;
  std::vector<DocNode> children;  // of a sequence or a map, in the order of the file

  const DocNode* Find(std::string_view name) const;
};

// The documents of a file, empty ones left out. What is wrong goes to `problems`; after a syntax
// error nothing is returned, because what follows it cannot be trusted.
std::vector<DocNode> ParseDocuments(std::string_view text, Problems& problems);

// "a map", "a list", "nothing", or the scalar itself in quotes: for messages.
std::string DescribeNode(const DocNode& node);

}  // namespace muster::model
