// Tiresias (NSDI '19): seconds. `iterations` and `interval` follow from the other columns.
#include "sim/jobs/formats.h"
#include "sim/jobs/layout.h"

namespace muster::sim {

Result<JobTrace> ReadTiresias(const Table& table) {
  return ReadRows(table, {.name = "job_id",
                          .submit = "submit_time",
                          .gpus = "num_gpu",
                          .duration = "duration",
                          .model = "model_name"});
}

}  // namespace muster::sim
