#include "base/blocking.h"

#include <gtest/gtest.h>

#include <thread>

namespace weir {
namespace {

TEST(Blocking, IsAllowedWhereNothingSaysOtherwise) {
  EXPECT_FALSE(ThreadNeverBlocks());
  MayBlock("a test");
}

TEST(Blocking, TheMarkIsOfOneThreadAndEndsWithItsObject) {
  {
    const NeverBlocks outer;
    { const NeverBlocks inner; }
    EXPECT_TRUE(ThreadNeverBlocks());
    std::thread([] { MayBlock("another thread"); }).join();
  }
  EXPECT_FALSE(ThreadNeverBlocks());
}

TEST(BlockingDeathTest, EndsTheProgramOnAMarkedThread) {
  EXPECT_DEATH(
      {
        const NeverBlocks mark;
        MayBlock("reading a file");
      },
      "blocking call on a reactor's thread: reading a file");
}

}  // namespace
}  // namespace weir
