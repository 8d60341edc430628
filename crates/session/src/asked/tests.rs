use super::*;
use crate::EXAMPLE;

fn asked(topic: Topic) -> Asked {
    Asked { topic, trained: None, tokens: None, days: None, price: None, most_nodes: None }
}

#[test]
fn every_question_ends_with_an_answer_that_opens_as_a_plan() {
    let input = UserInput::from_text(EXAMPLE);
    for topic in Topic::ALL {
        let asked =
            Asked { tokens: Some(1_000_000_000), price: Some(2.0), most_nodes: Some(2), ..asked(topic) };
        let mut asking = Asking::new(&input, &asked).unwrap();
        while asking.step(u64::MAX) {}
        let lines = asking.lines();
        let chosen = lines.iter().find(|line| line.chosen);
        let Some(line) = chosen else {
            panic!("{}: {}", topic.name(), asking.answer());
        };
        let reached = line.reached.as_ref().unwrap();
        let mut changed = asked.changed(&input);
        for (field, value) in &reached.outcome.as_ref().unwrap().changes {
            changed.put((field.name().to_owned(), value.clone()));
        }
        let shown = State::new(changed).shown.unwrap();
        assert_eq!(shown.plan.cluster().gpus(), reached.gpus, "{}", topic.name());
        let (step, found) = (shown.report.time.step.get(), reached.outcome.as_ref().unwrap().step.get());
        assert!((step / found - 1.0).abs() < 1e-9, "{}: {step} and {found}", topic.name());
    }
}

#[test]
fn what_a_question_does_not_take_is_named() {
    for topic in Topic::ALL {
        assert_eq!(asked(topic).checked(), Ok(()));
        let misplaced = |name| Err(AskError::Misplaced { name, topic });
        let price = Asked { price: Some(2.0), ..asked(topic) }.checked();
        let takes = topic == Topic::Cheapest;
        assert_eq!(price, if takes { Ok(()) } else { misplaced("price") }, "{}", topic.name());
        let nodes = Asked { most_nodes: Some(2), ..asked(topic) }.checked();
        let takes = matches!(topic, Topic::Cheapest | Topic::Scaling);
        assert_eq!(nodes, if takes { Ok(()) } else { misplaced("most_nodes") }, "{}", topic.name());
    }
    for days in [0.0, -3.0, f64::NAN, f64::INFINITY] {
        let asked = Asked { days: Some(days), ..asked(Topic::Cheapest) };
        assert_eq!(asked.checked(), Err(AskError::NotPositive("days")), "{days}");
    }
}

#[test]
fn what_is_missing_is_asked() {
    let input = UserInput::from_text(EXAMPLE);
    let cheapest = Asking::new(&input, &asked(Topic::Cheapest));
    assert_eq!(cheapest.err(), Some(AskError::Tokens));
    let empty = Asking::new(&UserInput::from_text(""), &asked(Topic::FewestGpus));
    assert!(matches!(empty.err(), Some(AskError::NoPlan(_))));
}
