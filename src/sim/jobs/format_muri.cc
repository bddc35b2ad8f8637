// Muri (SIGCOMM '22): the columns of Tiresias and those of its resource stages; milliseconds.
#include "sim/jobs/formats.h"
#include "sim/jobs/layout.h"

namespace muster::sim {

Result<JobTrace> ReadMuri(const Table& table) {
  return ReadRows(table, {.name = "job_id",
                          .submit = "submit_time",
                          .gpus = "num_gpu",
                          .duration = "duration",
                          .model = "model_name",
                          .unit_ms = 1});
}

}  // namespace muster::sim
