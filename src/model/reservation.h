// Reservation: capacity that an admin keeps for a queue, or from everybody, for a time.
//
// Whole GPUs of named nodes; which GPUs of a node is left to the scheduler, who chooses anew in
// every cycle. Before it begins jobs may use them if they are expected to have ended by then; from
// its beginning on preemptible work of others leaves, and other work is waited for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::model {

struct ReservedPart {
  std::string node;
  int gpus = 0;
  friend bool operator==(const ReservedPart&, const ReservedPart&) = default;
};

struct Reservation {
  std::string name;
  std::string queue;  // whose jobs may use it, with those of the queues below; empty: nobody's
  std::int64_t from_ms = 0;
  std::int64_t to_ms = 0;
  std::vector<ReservedPart> parts;
  std::string about;
  friend bool operator==(const Reservation&, const Reservation&) = default;
};

}  // namespace muster::model
