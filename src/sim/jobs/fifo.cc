#include "sim/jobs/fifo.h"

#include "sim/jobs/play.h"

namespace muster::sim {

void Fifo::Submitted(const JobPlay& /*play*/, JobIndex job) { waiting_.push_back(job); }

void Fifo::Ended(const JobPlay& /*play*/, JobIndex /*job*/) {}

void Fifo::Decide(JobPlay& play) {
  while (!waiting_.empty() && play.job(waiting_.front()).gpus <= play.free_gpus()) {
    play.Start(waiting_.front());
    waiting_.pop_front();
  }
}

}  // namespace muster::sim
