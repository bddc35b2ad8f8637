// SpeedGauge: what the reports of a job's workers say of its speed, when it is news.
//
// Each worker reports once a second; each speed that is passed on becomes an event of the journal
// and makes the scheduler think again. So it is passed on when it is the first of a number of
// workers, or differs by a tenth from what was passed on of that number, and then not before half a
// minute is over. The numbers that count are `workers`, `step_ms`, `compute_ms` and `batch`;
// `noise_scale` and the limits of the batch may be missing (docs/contract.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "contract/records.h"
#include "model/event.h"

namespace muster::pools {

class SpeedGauge {
 public:
  struct News {
    std::int64_t workers = 0;
    model::Speed speed;  // of all GPUs: see PoolEvent
  };
  std::optional<News> Read(const contract::Report& report);

 private:
  struct Passed {
    std::int64_t at_ms = 0;
    model::Speed speed;
  };
  std::map<std::int64_t, Passed> passed_;  // by workers
};

}  // namespace muster::pools
