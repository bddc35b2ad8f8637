// Any bytes through the readers of `.case` files and of the corpus: no crash, no hang, no leak; and
// an error says something.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "sim/case_file.h"
#include "sim/corpus.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto story = muster::sim::ParseCase("fuzz", text);
  if (!story) MUSTER_CHECK(!story.error().message.empty(), "an error says what is wrong");
  const auto corpus = muster::sim::ParseCorpus("fuzz", text);
  if (!corpus) MUSTER_CHECK(!corpus.error().message.empty(), "an error says what is wrong");
  return 0;
}
