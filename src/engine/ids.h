// Ids: dense handles into the tables of one Cluster.
//
// Handles are indexes, so that the inner loops touch arrays and never hash a name. They mean
// nothing outside the Cluster that gave them out. Ties in every decision are broken by them, which
// is why they are given in the order of arrival and never by address.
#pragma once

#include <cstdint>

namespace muster::engine {

using NodeId = std::uint32_t;
using BankId = std::uint32_t;  // the GPUs of one type on one node
using TypeId = std::uint32_t;  // a GPU type
using QueueId = std::uint32_t;
using JobId = std::uint32_t;
using GroupId = std::uint32_t;
using WorkerId = std::uint32_t;
using ShapeId = std::uint32_t;  // equal worker requests
using ClassId = std::uint32_t;  // equal jobs
using LevelId = std::uint32_t;  // a level of a topology
using DomainId = std::uint32_t;

inline constexpr std::uint32_t kNone = 0xFFFFFFFFU;

}  // namespace muster::engine
