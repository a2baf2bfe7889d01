"""RQ as the tests drive it: python3 shop_rq.py work DIR | enqueue ORDER... | dead"""

import os
import sys

import redis
import rq

import shop_rq


def charge(order):
    with open(os.path.join(os.environ["SHOP"], "ran"), "a") as ran:
        ran.write(order + "\n")
    if os.path.exists(os.path.join(os.environ["SHOP"], "broken")):
        raise RuntimeError(f"card declined: order {order}")


if __name__ == "__main__":
    verb, *args = sys.argv[1:]
    connection = redis.Redis.from_url(os.environ["REDIS_URL"])
    queue = rq.Queue("orders", connection=connection)
    if verb == "work":
        os.environ["SHOP"] = args[0]
        rq.Worker([queue], connection=connection).work(with_scheduler=True)
    elif verb == "enqueue":
        for order in args:
            queue.enqueue(shop_rq.charge, order, retry=rq.Retry(max=1))
    elif verb == "dead":
        print(queue.failed_job_registry.count)
