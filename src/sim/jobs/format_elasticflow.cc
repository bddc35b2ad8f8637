// ElasticFlow (ASPLOS '23): seconds, two spellings of the columns. Where a file has a duration and
// a real one, the real one is what the job took.
#include "sim/jobs/formats.h"
#include "sim/jobs/layout.h"

namespace muster::sim {

Result<JobTrace> ReadElasticFlow(const Table& table) {
  const bool long_names = table.Has("submission_time");
  return ReadRows(table, {.name = "job_id",
                          .submit = long_names ? "submission_time" : "submit_time",
                          .gpus = "num_gpu",
                          .duration = table.Has("real_duration") ? "real_duration" : "duration",
                          .deadline = long_names ? "deadline" : "ddl",
                          .model = "model_name"});
}

}  // namespace muster::sim
