// name,user,queue,submit_s,gpus,duration_s, and where they are known deadline_s and model.
#include "sim/jobs/formats.h"
#include "sim/jobs/layout.h"

namespace muster::sim {

Result<JobTrace> ReadPlain(const Table& table) {
  JobLayout layout{.name = "name",
                   .user = "user",
                   .queue = "queue",
                   .submit = "submit_s",
                   .gpus = "gpus",
                   .duration = "duration_s"};
  if (table.Has("deadline_s")) layout.deadline = "deadline_s";
  if (table.Has("model")) layout.model = "model";
  return ReadRows(table, layout);
}

}  // namespace muster::sim
