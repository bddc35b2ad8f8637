#include "train/mesh/mesh.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "train/mesh/frame.h"
#include "train/mesh/handshake.h"
#include "train/mesh/test_gang.h"

namespace muster::train {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> Pattern(std::size_t size, int seed) {
  std::vector<std::byte> out(size);
  for (std::size_t i = 0; i < size; ++i) {
    out[i] = static_cast<std::byte>((i * 7 + i / 251 + static_cast<std::size_t>(seed)) % 256);
  }
  return out;
}

std::vector<MeshOptions> Same(int count, MeshOptions options = TestOptions()) {
  return std::vector<MeshOptions>(static_cast<std::size_t>(count), options);
}

// How the workers of a gang reach each other.
struct Way {
  std::string name;
  MeshOptions options;
  int hosts = 1;
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

std::vector<Way> Ways() {
  std::vector<Way> ways(5, Way{"shared", TestOptions(), 1});
  ways[1].name = "tcp";
  ways[1].options.share_memory = false;
  ways[2].name = "hosts";
  ways[2].hosts = 2;
  ways[3].name = "encrypted";
  ways[3].hosts = 2;
  ways[3].options.encrypt = true;
  ways[4].name = "throttled";
  ways[4].options.share_memory = false;
  ways[4].options.throttle_bytes_per_s = 200'000'000;
  if (!HasGloo()) return ways;
  Way gloo{"gloo", TestOptions(), 2};
  gloo.options.wire = "gloo";
  gloo.options.wire_least_bytes = 0;
  ways.push_back(gloo);
  gloo.name = "glooencrypted";
  gloo.options.encrypt = true;
  ways.push_back(gloo);
  gloo.name = "gloothrottled";
  gloo.options.encrypt = false;
  gloo.options.throttle_bytes_per_s = 200'000'000;
  ways.push_back(gloo);
  return ways;
}

std::vector<MeshOptions> On(const Way& way, int count) {
  auto options = Same(count, way.options);
  for (int i = 0; i < count && way.hosts > 1; ++i) {
    options[static_cast<std::size_t>(i)].host = "host" + std::to_string(i % way.hosts);
  }
  return options;
}

class MeshWayTest : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, MeshWayTest, testing::ValuesIn(Ways()),
                         [](const auto& way) { return way.param.name; });

TEST_P(MeshWayTest, ControlMessagesComeWholeAndInOrder) {
  TestGang gang(On(GetParam(), 3), [](Worker& worker) {
    for (int i = 0; i < 200; ++i) {
      for (const auto& peer : worker.all) {
        if (peer.id == worker.mesh->self().id) continue;
        const std::size_t size = i % 50 == 0 ? 100'000 : static_cast<std::size_t>(i);
        worker.mesh->Tell(peer.id, std::to_string(i) + ":" + std::string(size, 'x'));
      }
    }
    std::map<MemberId, int> next;
    for (int i = 0; i < 400; ++i) {
      const auto [from, text] = worker.inbox->NextTold();
      const int at = next[from]++;
      const std::size_t size = at % 50 == 0 ? 100'000 : static_cast<std::size_t>(at);
      EXPECT_EQ(text, std::to_string(at) + ":" + std::string(size, 'x'));
    }
    worker.End();
  });
  gang.EndAll();
}

// From shared memory and from elsewhere, looked at and fetched, of many sizes, several at a time.
TEST_P(MeshWayTest, WhatIsOfferedIsSeen) {
  TestGang gang(On(GetParam(), 3), [](Worker& worker) {
    const auto fabric = worker.Enter(1);
    ASSERT_TRUE(fabric);
    const auto memory = worker.mesh->memory();
    const std::vector<std::size_t> sizes{0, 1, 31, 4095, 4096, 70'001, 400'000, 3'000'001};
    std::vector<std::vector<std::byte>> elsewhere;
    std::size_t used = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      elsewhere.push_back(Pattern(sizes[i], worker.rank));
      std::span<const std::byte> bytes = elsewhere.back();
      if (i % 2 == 0 && used + sizes[i] <= memory.size()) {
        std::ranges::copy(bytes, memory.begin() + static_cast<std::ptrdiff_t>(used));
        bytes = memory.subspan(used, sizes[i]);
        used += sizes[i];
      }
      for (int peer = 0; peer < 3; ++peer) {
        if (peer != worker.rank) fabric->Offer(peer, i, bytes);
      }
    }
    for (std::size_t i = sizes.size(); i-- > 0;) {
      for (int peer = 0; peer < 3; ++peer) {
        if (peer == worker.rank) continue;
        const auto expected = Pattern(sizes[i], peer);
        if ((i + static_cast<std::size_t>(peer)) % 2 == 0) {
          const auto seen = fabric->Look(peer, i);
          ASSERT_TRUE(seen) << seen.error().message;
          EXPECT_TRUE(std::ranges::equal(*seen, expected)) << sizes[i];
          fabric->Done(peer, i);
        } else {
          std::vector<std::byte> into(sizes[i]);
          const auto fetched = fabric->Fetch(peer, i, into);
          ASSERT_TRUE(fetched) << fetched.error().message;
          EXPECT_EQ(into, expected);
        }
      }
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      for (int peer = 0; peer < 3; ++peer) {
        if (peer == worker.rank) continue;
        EXPECT_TRUE(fabric->Taken(peer, i));
      }
    }
    worker.End();
  });
  gang.EndAll();
}

TEST_P(MeshWayTest, TheDeathOfAPeerEndsEveryWait) {
  TestGang gang(On(GetParam(), 3), [](Worker& worker) {
    const auto fabric = worker.Enter(1);
    ASSERT_TRUE(fabric);
    if (worker.rank == 2) {
      SendLine(worker.line, "ready");
      ReadLine(worker.line);  // never comes
    }
    const auto bytes = Pattern(100'000, 1);
    const int other = 1 - worker.rank;
    fabric->Offer(other, 7, bytes);
    std::vector<std::byte> into(8);
    // Waits for one who lives, and for the one who dies.
    std::thread fetching([&] { EXPECT_FALSE(fabric->Fetch(2, 1, into)); });
    std::thread looking([&] { EXPECT_FALSE(fabric->Look(other, 9)); });
    std::thread taking([&] { EXPECT_FALSE(fabric->Taken(other, 7)); });
    SendLine(worker.line, "waiting");
    fetching.join();
    looking.join();
    taking.join();
    EXPECT_TRUE(fabric->aborted());
    EXPECT_EQ(worker.inbox->NextLost(), std::make_pair(worker.all[2].id, LostHow::kClosed));
    EXPECT_THAT(fabric->Look(other, 9).error().message, HasSubstr("is lost"));
    worker.End();
  });
  for (int i = 0; i < 3; ++i) ReadLine(gang.line(i));
  gang.Signal(2, SIGKILL);
  gang.Await(2);
  gang.EndAll();
}

// The connection lives on: the same two go on in the next generation, with the tags of the last.
TEST_P(MeshWayTest, WhatEarlierGenerationsOfferedIsVoid) {
  TestGang gang(On(GetParam(), 2), [](Worker& worker) {
    const int other = 1 - worker.rank;
    const auto old = Pattern(300'000, 10 + worker.rank);
    const auto bytes = Pattern(300'000, 20 + worker.rank);
    {
      const auto fabric = worker.Enter(1);
      ASSERT_TRUE(fabric);
      for (Tag tag = 0; tag < 20; ++tag) fabric->Offer(other, tag, old);
      fabric->Abort("");
      EXPECT_FALSE(fabric->Look(other, 0));
      EXPECT_FALSE(fabric->Taken(other, 0));
    }
    const auto fabric = worker.Enter(5);
    ASSERT_TRUE(fabric);
    fabric->Offer(other, 3, bytes);
    std::vector<std::byte> into(bytes.size());
    EXPECT_TRUE(fabric->Fetch(other, 3, into));
    EXPECT_EQ(into, Pattern(300'000, 20 + other));
    EXPECT_TRUE(fabric->Taken(other, 3));
    worker.mesh->Tell(worker.all[static_cast<std::size_t>(other)].id, "bye");
    EXPECT_EQ(worker.inbox->NextTold().second, "bye");
    worker.End();
  });
  gang.EndAll();
}

// In the middle of what takes a while: the memory is the caller's again at once, and the same
// connection carries the next generation.
TEST_P(MeshWayTest, WhatIsBrokenOffInItsMiddleTouchesNoMemoryAfterwards) {
  auto options = On(GetParam(), 2);
  for (auto& each : options) each.throttle_bytes_per_s = 40'000'000;
  TestGang gang(options, [](Worker& worker) {
    const int other = 1 - worker.rank;
    constexpr std::size_t kSize = 16U << 20U;
    {
      auto bytes = std::make_unique<std::vector<std::byte>>(Pattern(kSize, worker.rank));
      auto into = std::make_unique<std::vector<std::byte>>(kSize);
      const auto fabric = worker.Enter(1);
      ASSERT_TRUE(fabric);
      const auto first = Pattern(4, worker.rank);
      fabric->Offer(other, 1, first);
      fabric->Offer(other, 2, *bytes);
      std::thread fetching([&] { fabric->Fetch(other, 2, *into).has_value(); });
      EXPECT_TRUE(fabric->Look(other, 1));
      worker.mesh->Tell(worker.all[static_cast<std::size_t>(other)].id, "seen");
      EXPECT_EQ(worker.inbox->NextTold().second, "seen");
      if (worker.rank == 0) fabric->Abort("enough");
      fetching.join();
      while (!fabric->aborted()) std::this_thread::yield();
      std::ranges::fill(*into, std::byte{0x5A});
      bytes.reset();
      EXPECT_TRUE(std::ranges::all_of(*into, [](std::byte b) { return b == std::byte{0x5A}; }));
    }
    const auto fabric = worker.Enter(2);
    ASSERT_TRUE(fabric);
    const auto next = Pattern(600'000, 30 + worker.rank);
    fabric->Offer(other, 2, next);
    std::vector<std::byte> into(next.size());
    EXPECT_TRUE(fabric->Fetch(other, 2, into));
    EXPECT_EQ(into, Pattern(600'000, 30 + other));
    EXPECT_TRUE(fabric->Taken(other, 2));
    worker.End();
  });
  gang.EndAll();
}

// Also when the other enters the generation only later.
TEST_P(MeshWayTest, WhatOneGivesUpIsOverForAll) {
  TestGang gang(On(GetParam(), 2), [](Worker& worker) {
    if (worker.rank == 1) ReadLine(worker.line);
    for (const std::uint64_t generation : {1U, 2U}) {
      const auto fabric = worker.Enter(generation);
      ASSERT_TRUE(fabric);
      if (worker.rank == 0 && generation == 1) {
        fabric->Abort("enough");
        SendLine(worker.line, "gave up");
      } else if (worker.rank == 1 && generation == 2) {
        fabric->Abort("enough");
      }
      EXPECT_THAT(fabric->Look(1 - worker.rank, 1).error().message,
                  testing::AnyOf("enough", HasSubstr("has given up the generation")));
    }
    worker.End();
  });
  ReadLine(gang.line(0));
  SendLine(gang.line(1), "go");
  gang.EndAll();
}

TEST_P(MeshWayTest, AFrozenPeerIsSilentAndFindsItsConnectionsClosedWhenItReturns) {
  auto options = On(GetParam(), 2);
  for (auto& each : options) each.timeout_ms = 2000;
  TestGang gang(options, [](Worker& worker) {
    const auto fabric = worker.Enter(1);
    ASSERT_TRUE(fabric);
    SendLine(worker.line, "ready");
    const int other = 1 - worker.rank;
    EXPECT_FALSE(fabric->Look(other, 1));
    const auto [who, how] = worker.inbox->NextLost();
    EXPECT_EQ(who, worker.all[static_cast<std::size_t>(other)].id);
    EXPECT_EQ(how, worker.rank == 0 ? LostHow::kSilent : LostHow::kClosed);
    EXPECT_FALSE(worker.mesh->Connected(who));
    worker.End();
  });
  for (int i = 0; i < 2; ++i) ReadLine(gang.line(i));
  gang.Signal(1, SIGSTOP);
  EXPECT_EQ(ReadLine(gang.line(0)), "done");
  gang.Signal(1, SIGCONT);
  EXPECT_EQ(ReadLine(gang.line(1)), "done");
  for (int i = 0; i < 2; ++i) SendLine(gang.line(i), "go");
  gang.AwaitAll();
}

TEST(MeshTest, BothMayDialAtOnceAndAgain) {
  TestGang gang(
      Same(2),
      [](Worker& worker) {
        const auto& peer = worker.all[static_cast<std::size_t>(1 - worker.rank)];
        for (int round = 0; round < 50; ++round) {
          SendLine(worker.line, "ready");
          ReadLine(worker.line);
          const auto connected = worker.mesh->Connect(peer);
          ASSERT_TRUE(connected) << connected.error().message;
          worker.mesh->Tell(peer.id, std::to_string(round));
          ASSERT_EQ(worker.inbox->NextTold().second, std::to_string(round));
          SendLine(worker.line, "told");
          ReadLine(worker.line);
          if ((round + worker.rank) % 2 == 0) {
            worker.mesh->Drop(peer.id);
          } else {
            EXPECT_EQ(worker.inbox->NextLost().second, LostHow::kClosed);
          }
        }
      },
      false);
  for (int turn = 0; turn < 100; ++turn) {
    for (int i = 0; i < 2; ++i) ReadLine(gang.line(i));
    for (int i = 0; i < 2; ++i) SendLine(gang.line(i), "go");
  }
  gang.AwaitAll();
}

struct Opened {
  Inbox inbox;
  std::unique_ptr<Mesh> mesh;
};

std::unique_ptr<Opened> Open(const MeshOptions& options) {
  auto out = std::make_unique<Opened>();
  auto mesh = Mesh::Open(options, out->inbox.Events());
  EXPECT_TRUE(mesh) << (mesh ? "" : mesh.error().message);
  out->mesh = std::move(*mesh);
  return out;
}

TEST(MeshTest, AnotherSecretJobMemberOrOptionIsRefusedWithAReason) {
  const auto here = Open(TestOptions());
  const auto why = [&](const MeshOptions& options, Endpoint to) {
    const auto stranger = Open(options);
    const auto connected = stranger->mesh->Connect(to);
    EXPECT_FALSE(connected);
    return connected ? "" : connected.error().message;
  };
  auto options = TestOptions();
  for (const bool share : {true, false}) {
    options.share_memory = share;
    options.secret = "another";
    EXPECT_THAT(why(options, here->mesh->self()), HasSubstr("another secret"));
    options.secret = TestOptions().secret;
    options.job = "other";
    EXPECT_THAT(why(options, here->mesh->self()), HasSubstr("another job than \"other\""));
    options.job = TestOptions().job;
    options.encrypt = true;
    EXPECT_THAT(why(options, here->mesh->self()), HasSubstr("does not encrypt"));
    options.encrypt = false;
    auto gone = here->mesh->self();
    ++gone.id;
    EXPECT_THAT(why(options, gone), HasSubstr("not the member that was meant"));
  }
  auto nowhere = here->mesh->self();
  nowhere.address = "127.0.0.1:1";
  EXPECT_THAT(why(options, nowhere), HasSubstr("cannot connect to 127.0.0.1:1"));
  nowhere.address = "somewhere";
  EXPECT_THAT(why(options, nowhere), HasSubstr("no address"));
}

std::int64_t Soon() { return NowNs() + 20'000'000'000; }

TEST(MeshTest, AnotherWireIsRefusedWithAReason) {
  if (!HasGloo()) GTEST_SKIP() << "built without Gloo";
  auto options = TestOptions();
  options.share_memory = false;
  options.wire = "gloo";
  const auto gloo = Open(options);
  options.wire = "tcp";
  const auto tcp = Open(options);
  options.wire = "auto";
  const auto automatic = Open(options);
  for (const auto* pair : {&tcp, &automatic}) {
    const auto refused = (*pair)->mesh->Connect(gloo->mesh->self());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(refused.error().message, HasSubstr("another way than this one"));
    EXPECT_FALSE(gloo->mesh->Connect((*pair)->mesh->self()));
  }
  EXPECT_TRUE(automatic->mesh->Connect(tcp->mesh->self()));
}

// Gloo does not connect addresses of two families; connections do.
TEST(MeshTest, AWireThatDoesNotComeAboutIsAnErrorUnlessItIsAutomatic) {
  if (!HasGloo()) GTEST_SKIP() << "built without Gloo";
  for (const std::string wire : {"gloo", "auto:gloo"}) {
    auto options = TestOptions();
    options.share_memory = false;
    options.wire = wire;
    const auto a = Open(options);
    options.address = "::1";
    auto inbox = std::make_unique<Inbox>();
    auto b = Mesh::Open(options, inbox->Events());
    if (!b) GTEST_SKIP() << "no IPv6 here: " << b.error().message;
    const auto connected = a->mesh->Connect((*b)->self());
    if (wire == "gloo") {
      ASSERT_FALSE(connected);
      EXPECT_THAT(connected.error().message, HasSubstr("the wire does not come about"));
      continue;
    }
    ASSERT_TRUE(connected) << connected.error().message;
    const std::vector<MemberId> members{a->mesh->self().id, (*b)->self().id};
    const auto left = a->mesh->Enter(1, members), right = (*b)->Enter(1, members);
    ASSERT_TRUE(left && right);
    const auto bytes = Pattern(300'000, 1);
    (*left)->Offer(1, 1, bytes);
    std::vector<std::byte> into(bytes.size());
    EXPECT_TRUE((*right)->Fetch(0, 1, into));
    EXPECT_EQ(into, bytes);
    EXPECT_TRUE((*left)->Taken(1, 1));
  }
}

TEST(MeshTest, AnotherVersionIsRefused) {
  const auto here = Open(TestOptions());
  Identity newer{12, TestOptions().job, TestOptions().secret};
  newer.version = kMeshVersion + 1;
  const auto dialed = DialPeer(newer, here->mesh->self(), false, Soon());
  ASSERT_FALSE(dialed);
  EXPECT_THAT(dialed.error().message,
              HasSubstr(fmt::format("speaks version {} of the mesh, this one {}", kMeshVersion,
                                    kMeshVersion + 1)));
}

// Reads until the other side closes.
std::string AwaitEnd(int fd) {
  std::string got;
  std::array<char, 512> piece;
  while (true) {
    EXPECT_TRUE(AwaitSocket(fd, POLLIN, Soon()));
    const ssize_t count = read(fd, piece.data(), piece.size());
    if (count <= 0) return got;
    got.append(piece.data(), static_cast<std::size_t>(count));
  }
}

// The first bytes of a message of this version, and what is behind them.
std::string Message(std::uint16_t kind, std::uint32_t size, const std::string& rest) {
  std::string out = "mustertm";
  const auto append = [&out](auto value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  append(kMeshVersion);
  append(kind);
  append(size);
  return out + rest;
}

TEST(MeshTest, GarbageAndDawdlersAreCutOffAndOthersStillComeIn) {
  constexpr std::uint16_t kHello = 1, kNoKind = 77;
  auto options = TestOptions();
  options.timeout_ms = 2000;
  const auto here = Open(options);
  const auto& self = here->mesh->self();
  std::vector<Fd> strangers;
  for (const std::string& garbage :
       {std::string("GET / HTTP/1.1\r\nHost: muster\r\n\r\n"), std::string(100'000, '\xff'),
        "mustertm" + std::string(1000, '\0'), "mustertm\x01" + std::string(1000, '\xff'),
        Message(kHello, 0xffffffff, std::string(1000, '\xff')), Message(kHello, 3, ""),
        Message(kHello, 16, ""), Message(kHello, 100, std::string(84, '\0')),
        Message(kHello, 100, std::string(84, '\xff')), Message(kNoKind, 24, std::string(8, 'x'))}) {
    auto fd = DialTcp(self.address, Soon());
    ASSERT_TRUE(fd);
    static_cast<void>(!write(fd->get(), garbage.data(), garbage.size()));
    strangers.push_back(std::move(*fd));
  }
  for (const auto& fd : strangers) AwaitEnd(fd.get());
  std::vector<Fd> dawdlers;
  for (int i = 0; i < 200; ++i) {
    auto fd = i % 2 == 0 ? DialTcp(self.address, Soon()) : DialUnix(self.segment, Soon());
    ASSERT_TRUE(fd);
    static_cast<void>(!write(fd->get(), "must", 4));
    dawdlers.push_back(std::move(*fd));
  }
  options.timeout_ms = 10'000;
  const auto friendly = Open(options);
  const auto connected = friendly->mesh->Connect(self);
  EXPECT_TRUE(connected) << connected.error().message;
  for (const auto& fd : dawdlers) EXPECT_EQ(AwaitEnd(fd.get()), "");
}

// A relay records what a member says; said again, it does not open the door.
TEST(MeshTest, AReplayedHandshakeIsRefused) {
  const auto here = Open(TestOptions());
  auto relay = ListenTcp("127.0.0.1");
  ASSERT_TRUE(relay);
  std::string recorded;
  std::thread relaying([&] {
    EXPECT_TRUE(AwaitSocket(relay->fd.get(), POLLIN, Soon()));
    const auto from = AcceptOn(relay->fd.get());
    const auto to = DialTcp(here->mesh->self().address, Soon());
    ASSERT_TRUE(from.fd && to);
    std::array<pollfd, 2> both{{{from.fd.get(), POLLIN, 0}, {to->get(), POLLIN, 0}}};
    while (poll(both.data(), 2, -1) > 0) {
      for (std::size_t i = 0; i < 2; ++i) {
        std::array<char, 4096> piece;
        const ssize_t count = (both[i].revents == 0) ? -1 : read(both[i].fd, piece.data(), 4096);
        if (count == 0) return;
        if (count < 0) continue;
        if (i == 0) recorded.append(piece.data(), static_cast<std::size_t>(count));
        static_cast<void>(!write(both[1 - i].fd, piece.data(), static_cast<std::size_t>(count)));
      }
    }
  });
  auto options = TestOptions();
  options.share_memory = false;
  {
    const auto there = Open(options);
    auto through = here->mesh->self();
    through.address = relay->address;
    const auto connected = there->mesh->Connect(through);
    EXPECT_TRUE(connected) << connected.error().message;
    EXPECT_TRUE(here->mesh->Connected(there->mesh->self().id));
  }
  relaying.join();
  const auto lost = here->inbox.NextLost().first;
  const auto fd = DialTcp(here->mesh->self().address, Soon());
  ASSERT_TRUE(fd);
  static_cast<void>(!write(fd->get(), recorded.data(), recorded.size()));
  EXPECT_NE(AwaitEnd(fd->get()), "");  // an answer, then the refusal
  EXPECT_FALSE(here->mesh->Connected(lost));
}

// One that knows the secret, and behind the handshake says nothing but this. Why it is lost.
std::string WhyLost(Mesh& here, Inbox& inbox, const FrameHeader& said) {
  Identity rogue{12, TestOptions().job, TestOptions().secret};
  const auto line = DialPeer(rogue, here.self(), false, Soon());
  EXPECT_TRUE(line) << (line ? "" : line.error().message);
  const auto fabric = here.Enter(1, {here.self().id, rogue.id});
  EXPECT_TRUE(fabric);
  EXPECT_EQ(write(line->fd.get(), &said, sizeof said), static_cast<ssize_t>(sizeof said));
  EXPECT_EQ(inbox.AwaitLost(), std::make_pair(rogue.id, LostHow::kClosed));
  return (*fabric)->Look(1, 1).error().message;
}

TEST(MeshTest, AFrameThatBreaksTheRulesEndsItsConnection) {
  for (const FrameHeader& said :
       {FrameHeader{FrameKind::kTold, 0, 0, 0, kMostTold + 1},
        FrameHeader{FrameKind::kBulk, 0, 1, 1, kMostBulk + 1},
        FrameHeader{FrameKind::kBulk, 0, 1, 1, ~std::uint64_t{0}},
        FrameHeader{FrameKind::kBeat, 0, 0, 0, 1}, FrameHeader{FrameKind::kWireBegin, 0, 1, 1, 8},
        FrameHeader{static_cast<FrameKind>(77), 0, 0, 0, 0}}) {
    const auto here = Open(TestOptions());
    EXPECT_THAT(WhyLost(*here->mesh, here->inbox, said),
                HasSubstr("is lost: it does not keep to the protocol"));
  }
}

TEST(MeshTest, BulkForWhichThereIsNoMemoryEndsItsConnectionAndNotTheProcess) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers end the process where memory cannot be had";
#endif
  TestGang gang(Same(1), [](Worker& worker) {
    const rlimit little{8ULL << 30U, 8ULL << 30U};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &little), 0);
    EXPECT_THAT(
        WhyLost(*worker.mesh, *worker.inbox, {FrameKind::kBulk, 0, 1, 1, std::uint64_t{60} << 30U}),
        HasSubstr("there is no memory"));
    worker.End();
  });
  gang.EndAll();
}

// File descriptors of this process, and pieces of memory that it shares.
std::pair<int, int> Held() {
  std::pair<int, int> out;
  for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) {
    out.first += fd.path().empty() ? 0 : 1;
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    out.second += line.find("memfd:muster") == std::string::npos ? 0 : 1;
  }
  return out;
}

TEST(MeshTest, KilledWorkersLeaveNothingBehind) {
  const auto body = [](Worker& worker) {
    if (worker.rank != 0) {
      SendLine(worker.line, "ready");
      ReadLine(worker.line);  // never comes
    }
    const auto before = Held();
    for (const auto& peer : worker.all) {
      if (peer.id == worker.mesh->self().id) continue;
      const auto connected = worker.mesh->Connect(peer);
      ASSERT_TRUE(connected) << connected.error().message;
    }
    EXPECT_GE(Held().first, before.first + 2);
    EXPECT_GE(Held().second, before.second + 2);
    SendLine(worker.line, "connected");
    for (int i = 0; i < 2; ++i) EXPECT_EQ(worker.inbox->NextLost().second, LostHow::kClosed);
    const auto until_ns = Soon();  // it was told of their end before it let go of the last
    while (Held() != before && NowNs() < until_ns) std::this_thread::yield();
    EXPECT_EQ(Held(), before);
    worker.End();
  };
  TestGang gang(Same(3), body, false);
  EXPECT_EQ(ReadLine(gang.line(0)), "connected");
  for (int i = 1; i < 3; ++i) {
    EXPECT_EQ(ReadLine(gang.line(i)), "ready");
    gang.Signal(i, SIGKILL);
    gang.Await(i);
  }
  gang.EndAll();
}

// Many threads of each member at once: what a sanitizer of threads looks at.
TEST(MeshTest, EveryCallMayBeMadeFromAnyThread) {
  for (const bool share : {true, false}) {
    auto options = TestOptions();
    options.share_memory = share;
    const auto a = Open(options), b = Open(options);
    ASSERT_TRUE(a->mesh->Connect(b->mesh->self()));
    const std::vector<MemberId> members{a->mesh->self().id, b->mesh->self().id};
    auto left = a->mesh->Enter(1, members), right = b->mesh->Enter(1, members);
    ASSERT_TRUE(left && right);
    const auto run = [](Fabric& fabric, std::span<std::byte> memory, Tag first) {
      const int other = 1 - fabric.rank();
      for (Tag tag = first; tag < first + 200; ++tag) {
        const auto bytes = memory.subspan(1000 * (first / 1000), 900);
        std::ranges::fill(bytes, static_cast<std::byte>(tag % 256));
        fabric.Offer(other, tag, bytes);
        std::array<std::byte, 900> into;
        ASSERT_TRUE(fabric.Fetch(other, tag, into));
        EXPECT_EQ(into[899], static_cast<std::byte>(tag % 256));
        ASSERT_TRUE(fabric.Taken(other, tag));
      }
    };
    std::vector<std::thread> threads;
    for (Tag part = 0; part < 4; ++part) {
      threads.emplace_back([&, part] { run(**left, a->mesh->memory(), part * 1000); });
      threads.emplace_back([&, part] { run(**right, b->mesh->memory(), part * 1000); });
    }
    for (auto& thread : threads) thread.join();
  }
}

TEST(MeshTest, OptionsThatCannotWorkAreRefused) {
  auto options = TestOptions();
  options.secret = "";
  EXPECT_FALSE(Mesh::Open(options, {}));
  options = TestOptions();
  options.job = std::string(256, 'x');
  EXPECT_FALSE(Mesh::Open(options, {}));
  options = TestOptions();
  options.address = "192.0.2.1";  // of nobody
  EXPECT_FALSE(Mesh::Open(options, {}));
}

}  // namespace
}  // namespace muster::train
