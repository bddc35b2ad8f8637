// Fields: reading typed values out of a document tree, and saying what is wrong with them.
//
// A MapReader is asked for the keys that mean something; what was never asked for is unknown, so
// the list of known keys cannot drift from the code that reads them. Each Read function reports at
// most one problem per value and returns nothing then, so that the decoder goes on with a default
// and finds the other mistakes of the file in the same pass. Quantities may be quoted, numbers and
// truth values may not.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/document.h"
#include "model/problems.h"

namespace muster::model {

class MapReader {
 public:
  // `what` is how messages call the map: "a job", "a queue".
  MapReader(const DocNode& node, std::string_view what, Problems& problems);

  const DocNode* Take(std::string_view key);
  // `example` is what to write when the key is missing.
  const DocNode* Require(std::string_view key, std::string_view example);
  // Reports the keys that nobody asked for.
  void Finish();

 private:
  const DocNode& node_;
  std::string_view what_;
  Problems& problems_;
  std::map<std::string_view, const DocNode*> present_;
  std::vector<std::string_view> known_;
};

enum class Quantity : std::uint8_t {
  kGpus,      // thousandths
  kCores,     // thousandths
  kShare,     // thousandths, a plain factor such as a weight
  kBytes,     // bytes
  kPieces,    // whole things
  kDuration,  // milliseconds
};

struct Bounds {
  std::int64_t least = 0;
  std::int64_t most = 0;
};

inline constexpr std::int64_t kMostMilli = 1'000'000'000'000;      // a thousand million GPUs
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;  // 1024 Pi
inline constexpr std::int64_t kMostDurationMs = 3'650'000LL * 86'400'000;  // ten thousand years
inline constexpr std::int64_t kMostPieces = 1'000'000'000;

// The bounds that keep sums over a cluster inside 64 bits.
Bounds Usual(Quantity quantity);

std::optional<std::int64_t> ReadQuantity(const DocNode& node, Quantity quantity, Problems& problems,
                                         std::optional<Bounds> bounds = std::nullopt);
std::string WriteQuantity(std::int64_t value, Quantity quantity);

std::optional<std::int64_t> ReadInteger(const DocNode& node, Bounds bounds, Problems& problems);
std::optional<bool> ReadBool(const DocNode& node, Problems& problems);
std::optional<std::string> ReadText(const DocNode& node, Problems& problems);
std::optional<std::string> ReadMatching(const DocNode& node, bool (*legal)(std::string_view),
                                        std::string_view noun, std::string_view rule,
                                        Problems& problems);
// The index of the word in `choices`.
std::optional<std::size_t> ReadChoice(const DocNode& node,
                                      std::span<const std::string_view> choices,
                                      Problems& problems);
std::vector<std::string> ReadNameList(const DocNode& node, bool (*legal)(std::string_view),
                                      std::string_view noun, std::string_view rule,
                                      Problems& problems);
std::map<std::string, std::string> ReadTextMap(const DocNode& node,
                                               bool (*legal_key)(std::string_view),
                                               std::string_view noun, std::string_view rule,
                                               Problems& problems);
std::map<std::string, std::string> ReadLabels(const DocNode& node, Problems& problems);
std::vector<std::string> ReadGpuTypes(const DocNode& node, Problems& problems);

// "`gpus`", or "the entry" for an item of a list.
std::string NameOf(const DocNode& node);

// A whole number without sign, however it stands in a text; nothing when it is not or too large.
std::optional<std::int64_t> ParseWhole(std::string_view text);

}  // namespace muster::model
