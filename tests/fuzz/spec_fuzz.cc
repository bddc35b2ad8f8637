// Any bytes through the document reader and the three decoders: no crash, no hang, no leak; and
// what is accepted must survive being written as YAML and as JSON and read back.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "model/cluster_codec.h"
#include "model/job_codec.h"
#include "model/queue_codec.h"
#include "model/spec_codec.h"

namespace {

using muster::model::DecodeSpec;
using muster::model::SpecFile;
using muster::model::TextFormat;

void CheckRoundTrip(const SpecFile& spec, TextFormat format) {
  const auto text = EncodeSpec(spec, format);
  if (!text) return;  // JSON holds one document only
  const auto again = DecodeSpec(*text);
  MUSTER_CHECK(!again.problems.HasErrors(), *text);
  MUSTER_CHECK(again.spec.jobs == spec.jobs, *text);
  MUSTER_CHECK(again.spec.queues == spec.queues, *text);
  MUSTER_CHECK(again.spec.cluster == spec.cluster, *text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto decoded = DecodeSpec(text);
  for (const auto& problem : decoded.problems.Sorted()) {
    MUSTER_CHECK(problem.mark.line >= 1, problem.message);
    MUSTER_CHECK(problem.mark.column >= 1, problem.message);
  }
  if (decoded.problems.HasErrors()) return 0;
  CheckRoundTrip(decoded.spec, TextFormat::kYaml);
  CheckRoundTrip(decoded.spec, TextFormat::kJson);
  return 0;
}
