// Trial: what would become of a job if it were submitted now.
//
// Works on a copy of the state, so it may run on any thread and leaves no trace. The scheduler
// itself decides; workers that would have to leave are taken to leave at once, and it is asked
// again until the job has its places or nothing changes any more. What others would submit
// meanwhile it cannot know.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "control/access.h"
#include "control/controller.h"
#include "model/document.h"

namespace muster::control {

class Trial {
 public:
  // Copies what is needed, on the controller's thread.
  Trial(Controller& control, const model::Job& job, const Access& access);
  // One that is there, and waits or is held.
  Trial(Controller& control, const state::JobRecord& job, const Access& access);

  Result<model::DocNode> Run();

 private:
  void Carry(const model::Plan& plan);
  void Fold(model::EventBody body);
  std::string WhyNot(const state::JobRecord& job);
  model::DocNode View();

  struct Displaced {
    JobNumber job = 0;
    model::StopWhy what = model::StopWhy::kPaused;
    model::Rule rule = model::Rule::kFreeCapacity;
    std::int64_t workers = 0;
  };

  state::State state_;
  EngineView engine_;
  std::int64_t now_ms_;
  JobNumber job_;
  bool held_ = false;     // it is tried as if it were released
  Outlook::Start start_;  // should it have to wait
  Access access_;
  std::vector<Displaced> displaced_;
};

}  // namespace muster::control
