// PartLine: a worker's side of what it says to the owner of one part in an asynchronous round.
//
// The owner may be this process itself; then it is called and nothing is sent. Each request has one
// answer, which is waited for before the next, so that all owners can be asked at the same time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "train/mesh/fabric.h"
#include "train/run/live_round.h"
#include "train/run/part_server.h"

namespace muster::train {

class PartLine {
 public:
  // `here`: the owner, where it is this process.
  PartLine(Fabric& fabric, int owner, PartCut cut, std::int64_t from, PartServer* here);

  // Asks for parameters; the owner of the first part says for which unit.
  void Ask(std::int64_t unit);
  // The answer, into the parameters of the column.
  Result<AsyncReply> Receive(std::span<float> column);
  // Sends the gradient of a unit, of the column, in memory that stays as it is until Applied.
  void Push(const Update& update, std::span<const float> column);
  Result<void> Applied();
  // There are no more units.
  Result<void> End();

 private:
  void Send(const AsyncRequest& request, const std::vector<std::int64_t>& bases);

  Fabric& fabric_;
  int owner_;
  PartCut cut_;
  std::int64_t from_;
  PartServer* here_;
  std::int64_t unit_ = 0;
  std::vector<std::int64_t> words_;
  std::vector<float> piece_;  // of one who is here
  Offers offers_;
};

}  // namespace muster::train
