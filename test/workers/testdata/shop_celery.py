"""Celery as the tests drive it: python3 shop_celery.py work DIR | enqueue ORDER... | dead"""

import os
import sys
import time

import celery
from kombu import Queue

app = celery.Celery("shop", broker=os.environ["AMQP_URL"])
app.conf.update(
    task_acks_late=True,
    task_acks_on_failure_or_timeout=False,
    task_default_queue="orders",
    task_queues=[Queue("orders", queue_arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.dlq"})],
    worker_prefetch_multiplier=1,
)


@app.task(name="charge", autoretry_for=(RuntimeError,), max_retries=1, default_retry_delay=1)
def charge(order):
    with open(os.path.join(os.environ["SHOP"], "ran"), "a") as ran:
        ran.write(order + "\n")
    if os.path.exists(os.path.join(os.environ["SHOP"], "broken")):
        raise RuntimeError(f"card declined: order {order}")


def dead():
    """Counts the dead letters; while somebody looks at some of them, the broker counts only the others."""
    with app.connection() as connection:
        queue, most = Queue("orders.dlq")(connection.default_channel), 0
        for _ in range(20):
            most = max(most, queue.queue_declare(passive=True).message_count)
            time.sleep(0.05)
        return most


if __name__ == "__main__":
    verb, *args = sys.argv[1:]
    if verb == "work":
        os.environ["SHOP"] = args[0]
        app.worker_main(["worker", "--pool=solo", "--without-gossip", "--without-mingle", "--loglevel=warning"])
    elif verb == "enqueue":
        with app.connection() as connection:
            Queue("orders.dlq")(connection.default_channel).declare()
        for order in args:
            charge.delay(order)
    elif verb == "dead":
        print(dead())
