// DeviceGroup: makes a group of the devices of all members of a view, beside the work.
//
// Every member makes one with the view. Where a member has no device, or two have the same, there
// is no group, and nobody is joined.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "train/mesh/fabric.h"
#include "train/run/device_sum.h"

namespace muster::train {

class DeviceGroup {
 public:
  DeviceGroup(DeviceSum& device, Fabric& fabric, int members);
  DeviceGroup(const DeviceGroup&) = delete;
  DeviceGroup& operator=(const DeviceGroup&) = delete;
  ~DeviceGroup();  // leaves it

  bool joined() const { return joined_; }

 private:
  void Form();
  Result<bool> AllApart();
  Result<std::string> Invitation();

  DeviceSum& device_;
  Fabric& fabric_;
  int members_;
  std::atomic<bool> joined_{false};
  std::thread thread_;
};

}  // namespace muster::train
